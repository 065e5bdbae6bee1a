DROP INDEX "memberships_org_id_idx";--> statement-breakpoint
ALTER TABLE "token_usage" ADD COLUMN "org_id" uuid;--> statement-breakpoint
UPDATE "token_usage" SET "org_id" = "tokens"."org_id" FROM "tokens" WHERE "tokens"."id" = "token_usage"."token_id";--> statement-breakpoint
ALTER TABLE "token_usage" ALTER COLUMN "org_id" SET NOT NULL;--> statement-breakpoint
CREATE FUNCTION token_usage_set_org_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.org_id := (SELECT org_id FROM tokens WHERE id = NEW.token_id);
  RETURN NEW;
END
$$;--> statement-breakpoint
-- For the version that still runs while a hosted service is deployed.
CREATE TRIGGER token_usage_org_id BEFORE INSERT ON "token_usage"
  FOR EACH ROW WHEN (NEW.org_id IS NULL) EXECUTE FUNCTION token_usage_set_org_id();--> statement-breakpoint
CREATE INDEX "users_unverified_idx" ON "users" USING btree ("created_at") WHERE "users"."email_verified_at" is null;--> statement-breakpoint
CREATE INDEX "audit_events_org_id_ip_idx" ON "audit_events" USING btree ("org_id","ip","created_at");--> statement-breakpoint
CREATE INDEX "token_usage_org_id_idx" ON "token_usage" USING btree ("org_id","month");--> statement-breakpoint
CREATE INDEX "memberships_org_id_created_at_idx" ON "memberships" USING btree ("org_id","created_at");--> statement-breakpoint
CREATE INDEX "projects_org_id_idx" ON "projects" USING btree ("org_id","created_at") WHERE "projects"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "outbox_mail_idx" ON "outbox" USING btree ("created_at") WHERE "outbox"."kind" = 'mail';--> statement-breakpoint
CREATE INDEX "tokens_unrevoked_idx" ON "tokens" USING btree ("org_id","kind","expires_at") WHERE "tokens"."revoked_at" is null;--> statement-breakpoint
-- A plan that is made once for all values takes an organization for an average one, with a few rows. It would then find
-- one row by its id among all rows of the organization, which can be thousands. So the planner is told that many rows
-- have the same organization; plans that are made for one organization still use the frequencies that ANALYZE finds.
ALTER TABLE "memberships" ALTER COLUMN "org_id" SET (n_distinct = -0.001);--> statement-breakpoint
ALTER TABLE "tunnels" ALTER COLUMN "org_id" SET (n_distinct = -0.001);--> statement-breakpoint
ALTER TABLE "tokens" ALTER COLUMN "org_id" SET (n_distinct = -0.001);--> statement-breakpoint
ALTER TABLE "domains" ALTER COLUMN "org_id" SET (n_distinct = -0.001);--> statement-breakpoint
ALTER TABLE "reserved_subdomains" ALTER COLUMN "org_id" SET (n_distinct = -0.001);--> statement-breakpoint
ALTER TABLE "projects" ALTER COLUMN "org_id" SET (n_distinct = -0.001);--> statement-breakpoint
ALTER TABLE "invitations" ALTER COLUMN "org_id" SET (n_distinct = -0.001);--> statement-breakpoint
ALTER TABLE "audit_events" ALTER COLUMN "org_id" SET (n_distinct = -0.001);
