ALTER TABLE "tunnels" ADD COLUMN "asked_end" timestamp with time zone;--> statement-breakpoint
-- Nobody knows any more what was asked for: what is there keeps its end.
UPDATE "tunnels" SET "asked_end" = "expires_at";
