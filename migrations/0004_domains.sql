CREATE TABLE "domains" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"org_id" uuid NOT NULL,
	"domain" text NOT NULL,
	"verification_token" text NOT NULL,
	"verified_at" timestamp with time zone,
	"bound_tunnel_id" uuid,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "domains_domain" CHECK ("domains"."domain" ~ '^[a-z0-9-]+([.][a-z0-9-]+)+$'),
	CONSTRAINT "domains_bound_when_verified" CHECK ("domains"."bound_tunnel_id" is null or "domains"."verified_at" is not null)
);
--> statement-breakpoint
CREATE TABLE "reserved_subdomains" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"org_id" uuid NOT NULL,
	"subdomain" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "reserved_subdomains_subdomain" CHECK ("reserved_subdomains"."subdomain" ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')
);
--> statement-breakpoint
ALTER TABLE "outbox" DROP CONSTRAINT "outbox_kind";--> statement-breakpoint
ALTER TABLE "hostnames" ADD COLUMN "held_by_org_id" uuid;--> statement-breakpoint
ALTER TABLE "hostnames" ADD COLUMN "held_until" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "domains" ADD CONSTRAINT "domains_org_id_organizations_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "domains" ADD CONSTRAINT "domains_bound_tunnel_id_tunnels_id_fk" FOREIGN KEY ("bound_tunnel_id") REFERENCES "public"."tunnels"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "reserved_subdomains" ADD CONSTRAINT "reserved_subdomains_org_id_organizations_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "domains_domain_org_id_key" ON "domains" USING btree ("domain","org_id");--> statement-breakpoint
CREATE UNIQUE INDEX "domains_verified_key" ON "domains" USING btree ("domain") WHERE "domains"."verified_at" is not null;--> statement-breakpoint
CREATE INDEX "domains_org_id_idx" ON "domains" USING btree ("org_id","created_at");--> statement-breakpoint
CREATE INDEX "domains_bound_tunnel_id_idx" ON "domains" USING btree ("bound_tunnel_id");--> statement-breakpoint
CREATE INDEX "domains_unverified_idx" ON "domains" USING btree ("created_at") WHERE "domains"."verified_at" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "reserved_subdomains_subdomain_key" ON "reserved_subdomains" USING btree ("subdomain");--> statement-breakpoint
CREATE INDEX "reserved_subdomains_org_id_idx" ON "reserved_subdomains" USING btree ("org_id","created_at");--> statement-breakpoint
ALTER TABLE "hostnames" ADD CONSTRAINT "hostnames_held_by_org_id_organizations_id_fk" FOREIGN KEY ("held_by_org_id") REFERENCES "public"."organizations"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "hostnames_held_by_org_id_idx" ON "hostnames" USING btree ("held_by_org_id");--> statement-breakpoint
ALTER TABLE "outbox" ADD CONSTRAINT "outbox_kind" CHECK ("outbox"."kind" in ('hostname', 'tunnel_retired', 'tunnel_settings', 'tunnel_maintenance', 'token_revoked', 'custom_hostname', 'mail'));