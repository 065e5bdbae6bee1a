CREATE TABLE "webhook_receivers" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"org_id" uuid NOT NULL,
	"name" text NOT NULL,
	"validator" text NOT NULL,
	"secret" text NOT NULL,
	"previous_secret" text,
	"previous_secret_until" timestamp with time zone,
	"version" integer DEFAULT 1 NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "webhook_receivers_validator" CHECK ("webhook_receivers"."validator" in ('code_host', 'chat_app', 'payments', 'generic_hmac_sha256')),
	CONSTRAINT "webhook_receivers_previous_secret" CHECK (("webhook_receivers"."previous_secret" is null) = ("webhook_receivers"."previous_secret_until" is null))
);
--> statement-breakpoint
ALTER TABLE "outbox" DROP CONSTRAINT "outbox_kind";--> statement-breakpoint
ALTER TABLE "webhook_receivers" ADD CONSTRAINT "webhook_receivers_org_id_organizations_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "webhook_receivers_org_id_idx" ON "webhook_receivers" USING btree ("org_id","created_at");--> statement-breakpoint
ALTER TABLE "outbox" ADD CONSTRAINT "outbox_kind" CHECK ("outbox"."kind" in ('hostname', 'tunnel_retired', 'tunnel_stopping', 'tunnel_ends', 'tunnel_settings', 'tunnel_maintenance', 'connection_ended', 'token_revoked', 'token_over_budget', 'custom_hostname', 'receiver_settings', 'receiver_retired', 'mail'));