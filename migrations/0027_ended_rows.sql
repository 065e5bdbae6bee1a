ALTER TABLE "traffic" DROP CONSTRAINT "traffic_tunnel_id_tunnels_id_fk";
--> statement-breakpoint
CREATE INDEX "token_usage_tunnel_id_idx" ON "token_usage" USING btree ("tunnel_id");--> statement-breakpoint
CREATE INDEX "device_codes_token_id_idx" ON "device_codes" USING btree ("token_id");--> statement-breakpoint
CREATE INDEX "tokens_ended_at_idx" ON "tokens" USING btree (least("revoked_at", "expires_at"));--> statement-breakpoint
CREATE INDEX "tunnels_ended_at_idx" ON "tunnels" USING btree (coalesce("deleted_at", "expires_at")) WHERE "tunnels"."deleted_at" is not null or "tunnels"."status" = 'expired';