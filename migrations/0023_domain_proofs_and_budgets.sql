ALTER TABLE "domains" ADD COLUMN "proof_missing_since" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "domains" ADD COLUMN "next_proof_check_at" timestamp with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "organizations" ADD COLUMN "monthly_budget_usd_cents" bigint;--> statement-breakpoint
CREATE INDEX "domains_next_proof_check_at_idx" ON "domains" USING btree ("next_proof_check_at") WHERE "domains"."verified_at" is not null;--> statement-breakpoint
ALTER TABLE "organizations" ADD CONSTRAINT "organizations_monthly_budget_usd_cents" CHECK ("organizations"."monthly_budget_usd_cents" between 0 and 1000000000);