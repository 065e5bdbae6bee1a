CREATE INDEX "projects_deleted_at_idx" ON "projects" USING btree ("deleted_at") WHERE "projects"."deleted_at" is not null;--> statement-breakpoint
CREATE INDEX "tunnels_project_id_idx" ON "tunnels" USING btree ("project_id");--> statement-breakpoint
CREATE INDEX "tunnels_expired_idx" ON "tunnels" USING btree ("expires_at") WHERE "tunnels"."deleted_at" is null and "tunnels"."status" = 'expired';