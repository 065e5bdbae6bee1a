CREATE TABLE "token_usage" (
	"token_id" uuid NOT NULL,
	"month" text NOT NULL,
	"tunnel_id" uuid NOT NULL,
	"bytes" bigint NOT NULL,
	"requests" bigint NOT NULL,
	CONSTRAINT "token_usage_token_id_month_tunnel_id_pk" PRIMARY KEY("token_id","month","tunnel_id"),
	CONSTRAINT "token_usage_month" CHECK ("token_usage"."month" ~ '^[0-9]{4}-[0-9]{2}$')
);
--> statement-breakpoint
ALTER TABLE "outbox" DROP CONSTRAINT "outbox_kind";--> statement-breakpoint
ALTER TABLE "tokens" ADD COLUMN "lineage_id" uuid DEFAULT gen_random_uuid() NOT NULL;--> statement-breakpoint
ALTER TABLE "token_usage" ADD CONSTRAINT "token_usage_token_id_tokens_id_fk" FOREIGN KEY ("token_id") REFERENCES "public"."tokens"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "token_usage" ADD CONSTRAINT "token_usage_tunnel_id_tunnels_id_fk" FOREIGN KEY ("tunnel_id") REFERENCES "public"."tunnels"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "tokens_project_id_idx" ON "tokens" USING btree ("project_id");--> statement-breakpoint
CREATE INDEX "tokens_lineage_id_idx" ON "tokens" USING btree ("lineage_id");--> statement-breakpoint
ALTER TABLE "outbox" ADD CONSTRAINT "outbox_kind" CHECK ("outbox"."kind" in ('hostname', 'tunnel_retired', 'tunnel_settings', 'tunnel_maintenance', 'token_revoked', 'token_over_budget', 'custom_hostname', 'mail'));