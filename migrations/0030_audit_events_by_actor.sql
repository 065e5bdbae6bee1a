CREATE INDEX "audit_events_org_id_user_id_idx" ON "audit_events" USING btree ("org_id","user_id","created_at");--> statement-breakpoint
-- As in 0026: of a user whose id the planner does not know, it must not expect so many events that reading all of them in the
-- order of time finds a page of that user's soon. For a user without events it would read them to the end.
ALTER TABLE "audit_events" ALTER COLUMN "user_id" SET (n_distinct = -0.001);
