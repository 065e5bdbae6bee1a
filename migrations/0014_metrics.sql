CREATE TABLE "ended_counters" (
	"org_id" uuid PRIMARY KEY NOT NULL,
	"counters" jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "traffic" (
	"org_id" uuid NOT NULL,
	"grain" text NOT NULL,
	"starts_at" timestamp with time zone NOT NULL,
	"tunnel_id" uuid NOT NULL,
	"requests" bigint NOT NULL,
	"bytes_in" bigint NOT NULL,
	"bytes_out" bigint NOT NULL,
	CONSTRAINT "traffic_org_id_grain_starts_at_tunnel_id_pk" PRIMARY KEY("org_id","grain","starts_at","tunnel_id"),
	CONSTRAINT "traffic_grain" CHECK ("traffic"."grain" in ('minute', 'hour'))
);
--> statement-breakpoint
CREATE TABLE "tunnel_counters" (
	"tunnel_id" uuid PRIMARY KEY NOT NULL,
	"org_id" uuid NOT NULL,
	"sequence" bigint NOT NULL,
	"counters" jsonb NOT NULL,
	"ended_at" timestamp with time zone,
	"folded_at" timestamp with time zone
);
--> statement-breakpoint
ALTER TABLE "traffic" ADD CONSTRAINT "traffic_tunnel_id_tunnels_id_fk" FOREIGN KEY ("tunnel_id") REFERENCES "public"."tunnels"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tunnel_counters" ADD CONSTRAINT "tunnel_counters_tunnel_id_tunnels_id_fk" FOREIGN KEY ("tunnel_id") REFERENCES "public"."tunnels"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "traffic_grain_starts_at_idx" ON "traffic" USING btree ("grain","starts_at");--> statement-breakpoint
CREATE INDEX "tunnel_counters_org_id_idx" ON "tunnel_counters" USING btree ("org_id") WHERE "tunnel_counters"."folded_at" is null;--> statement-breakpoint
CREATE INDEX "tunnel_counters_ended_at_idx" ON "tunnel_counters" USING btree ("ended_at") WHERE "tunnel_counters"."folded_at" is null;