CREATE TABLE "billing_customers" (
	"org_id" uuid NOT NULL,
	"source" text NOT NULL,
	"customer_id" text,
	CONSTRAINT "billing_customers_org_id_source_pk" PRIMARY KEY("org_id","source"),
	CONSTRAINT "billing_customers_source" CHECK ("billing_customers"."source" in ('payments', 'mock'))
);
--> statement-breakpoint
CREATE TABLE "billing_events" (
	"id" text PRIMARY KEY NOT NULL,
	"type" text NOT NULL,
	"received_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "subscriptions" (
	"id" text PRIMARY KEY NOT NULL,
	"org_id" uuid NOT NULL,
	"source" text NOT NULL,
	"status" text NOT NULL,
	"plan" text NOT NULL,
	"cycle" text NOT NULL,
	"period_end" timestamp with time zone,
	"cancel_at_period_end" boolean NOT NULL,
	"event_at" timestamp with time zone NOT NULL,
	"asked_at" timestamp with time zone,
	"overdue_since" timestamp with time zone,
	"overdue_period_end" timestamp with time zone,
	"is_entitling" boolean NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "subscriptions_source" CHECK ("subscriptions"."source" in ('payments', 'mock')),
	CONSTRAINT "subscriptions_plan" CHECK ("subscriptions"."plan" in ('pro', 'team')),
	CONSTRAINT "subscriptions_cycle" CHECK ("subscriptions"."cycle" in ('monthly', 'yearly')),
	CONSTRAINT "subscriptions_status" CHECK ("subscriptions"."status" in ('trialing', 'active', 'past_due', 'canceled', 'unpaid', 'incomplete', 'incomplete_expired', 'paused'))
);
--> statement-breakpoint
ALTER TABLE "outbox" DROP CONSTRAINT "outbox_kind";--> statement-breakpoint
ALTER TABLE "tunnels" ADD COLUMN "is_beyond_plan" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "billing_customers" ADD CONSTRAINT "billing_customers_org_id_organizations_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "subscriptions" ADD CONSTRAINT "subscriptions_org_id_organizations_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "billing_customers_customer_id_key" ON "billing_customers" USING btree ("customer_id");--> statement-breakpoint
CREATE INDEX "billing_events_received_at_idx" ON "billing_events" USING btree ("received_at");--> statement-breakpoint
CREATE INDEX "subscriptions_org_id_idx" ON "subscriptions" USING btree ("org_id");--> statement-breakpoint
CREATE INDEX "subscriptions_overdue_idx" ON "subscriptions" USING btree ("overdue_since") WHERE "subscriptions"."is_entitling" and "subscriptions"."status" = 'past_due';--> statement-breakpoint
ALTER TABLE "outbox" ADD CONSTRAINT "outbox_kind" CHECK ("outbox"."kind" in ('hostname', 'tunnel_retired', 'tunnel_stopping', 'tunnel_ends', 'tunnel_settings', 'tunnel_maintenance', 'connection_ended', 'token_revoked', 'token_over_budget', 'custom_hostname', 'subscription_end', 'receiver_settings', 'receiver_retired', 'mail'));