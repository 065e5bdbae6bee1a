ALTER TABLE "device_codes" ADD COLUMN "ip" text;--> statement-breakpoint
ALTER TABLE "device_codes" ADD COLUMN "denied_at" timestamp with time zone;