DROP INDEX "hostnames_held_by_org_id_idx";--> statement-breakpoint
CREATE INDEX "hostnames_held_by_org_id_idx" ON "hostnames" USING btree ("held_by_org_id","held_until");