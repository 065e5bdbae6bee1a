ALTER TABLE "outbox" DROP CONSTRAINT "outbox_kind";--> statement-breakpoint
ALTER TABLE "traffic" ALTER COLUMN "requests" SET DEFAULT 0;--> statement-breakpoint
ALTER TABLE "traffic" ALTER COLUMN "bytes_in" SET DEFAULT 0;--> statement-breakpoint
ALTER TABLE "traffic" ALTER COLUMN "bytes_out" SET DEFAULT 0;--> statement-breakpoint
ALTER TABLE "tunnel_counters" ALTER COLUMN "sequence" SET DEFAULT 0;--> statement-breakpoint
ALTER TABLE "outbox" ADD COLUMN "last_error" text;--> statement-breakpoint
ALTER TABLE "outbox" ADD COLUMN "parked_at" timestamp with time zone;