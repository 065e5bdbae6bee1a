CREATE TABLE "private_network_devices" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"network_id" uuid NOT NULL,
	"name" text NOT NULL,
	"public_key" text NOT NULL,
	"host_number" integer NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "private_networks" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"org_id" uuid NOT NULL,
	"name" text NOT NULL,
	"cidr" text NOT NULL,
	"relay_id" text,
	"server_public_key" text,
	"server_listen_port" integer,
	"reserved_udp_port" integer,
	"own_endpoint" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "private_networks_server" CHECK (("private_networks"."server_public_key" is null) = ("private_networks"."server_listen_port" is null))
);
--> statement-breakpoint
CREATE TABLE "relay_ports" (
	"relay_id" text NOT NULL,
	"protocol" text NOT NULL,
	"port" integer NOT NULL,
	"org_id" uuid,
	"owner_id" uuid NOT NULL,
	"released_at" timestamp with time zone,
	CONSTRAINT "relay_ports_relay_id_protocol_port_pk" PRIMARY KEY("relay_id","protocol","port"),
	CONSTRAINT "relay_ports_protocol" CHECK ("relay_ports"."protocol" in ('udp', 'tcp'))
);
--> statement-breakpoint
CREATE TABLE "relays" (
	"id" text PRIMARY KEY NOT NULL,
	"host" text NOT NULL,
	"url" text NOT NULL,
	"first_port" integer NOT NULL,
	"last_port" integer NOT NULL,
	"connected_epoch" text,
	"last_seen_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "outbox" DROP CONSTRAINT "outbox_kind";--> statement-breakpoint
ALTER TABLE "tunnels" ADD COLUMN "allowed_cidrs" jsonb;--> statement-breakpoint
ALTER TABLE "tunnels" ADD COLUMN "relay_id" text;--> statement-breakpoint
ALTER TABLE "tunnels" ADD COLUMN "public_port" integer;--> statement-breakpoint
ALTER TABLE "private_network_devices" ADD CONSTRAINT "private_network_devices_network_id_private_networks_id_fk" FOREIGN KEY ("network_id") REFERENCES "public"."private_networks"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "private_networks" ADD CONSTRAINT "private_networks_org_id_organizations_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "private_networks" ADD CONSTRAINT "private_networks_relay_id_relays_id_fk" FOREIGN KEY ("relay_id") REFERENCES "public"."relays"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "relay_ports" ADD CONSTRAINT "relay_ports_relay_id_relays_id_fk" FOREIGN KEY ("relay_id") REFERENCES "public"."relays"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "relay_ports" ADD CONSTRAINT "relay_ports_org_id_organizations_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "private_network_devices_public_key_key" ON "private_network_devices" USING btree ("network_id","public_key");--> statement-breakpoint
CREATE UNIQUE INDEX "private_network_devices_host_number_key" ON "private_network_devices" USING btree ("network_id","host_number");--> statement-breakpoint
CREATE UNIQUE INDEX "private_networks_org_id_name_key" ON "private_networks" USING btree ("org_id","name");--> statement-breakpoint
CREATE UNIQUE INDEX "relay_ports_owner_key" ON "relay_ports" USING btree ("owner_id") WHERE "relay_ports"."released_at" is null;--> statement-breakpoint
CREATE INDEX "relay_ports_org_id_idx" ON "relay_ports" USING btree ("org_id");--> statement-breakpoint
ALTER TABLE "tunnels" ADD CONSTRAINT "tunnels_relay_id_relays_id_fk" FOREIGN KEY ("relay_id") REFERENCES "public"."relays"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "outbox" ADD CONSTRAINT "outbox_kind" CHECK ("outbox"."kind" in ('hostname', 'tunnel_retired', 'tunnel_stopping', 'tunnel_ends', 'tunnel_settings', 'tunnel_capturing', 'tunnel_maintenance', 'connection_ended', 'watching_ended', 'tunnel_captures_cleared', 'token_revoked', 'token_over_budget', 'custom_hostname', 'subscription_end', 'receiver_settings', 'receiver_retired', 'relay_revocation', 'mail'));--> statement-breakpoint
ALTER TABLE "tunnels" ADD CONSTRAINT "tunnels_public_port" CHECK (("tunnels"."relay_id" is null) = ("tunnels"."public_port" is null) and ("tunnels"."public_port" is null or "tunnels"."protocol" = 'tcp'));