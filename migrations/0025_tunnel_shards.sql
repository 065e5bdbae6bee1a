ALTER TABLE "tunnels" ADD COLUMN "shards" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "tunnels" ADD CONSTRAINT "tunnels_shards" CHECK ("tunnels"."shards" between 1 and 16);