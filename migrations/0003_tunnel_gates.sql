ALTER TABLE "outbox" DROP CONSTRAINT "outbox_kind";--> statement-breakpoint
ALTER TABLE "tunnels" ADD COLUMN "maintenance" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "tunnels" ADD COLUMN "settings_version" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "tunnels" ADD COLUMN "basic_auth_username" text;--> statement-breakpoint
ALTER TABLE "tunnels" ADD COLUMN "basic_auth_hash" text;--> statement-breakpoint
ALTER TABLE "tunnels" ADD COLUMN "policy" jsonb;--> statement-breakpoint
ALTER TABLE "outbox" ADD CONSTRAINT "outbox_kind" CHECK ("outbox"."kind" in ('hostname', 'tunnel_retired', 'tunnel_settings', 'tunnel_maintenance', 'token_revoked', 'mail'));--> statement-breakpoint
ALTER TABLE "tunnels" ADD CONSTRAINT "tunnels_basic_auth" CHECK (("tunnels"."basic_auth_username" is null) = ("tunnels"."basic_auth_hash" is null));