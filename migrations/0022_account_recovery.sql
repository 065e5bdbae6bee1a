CREATE TABLE "mfa_removals" (
	"user_id" uuid PRIMARY KEY NOT NULL,
	"token_hash" text NOT NULL,
	"requested_at" timestamp with time zone DEFAULT now() NOT NULL,
	"usable_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone
);
--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "mails_sent" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "mails_since" timestamp with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "authenticated_at" timestamp with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
UPDATE "sessions" SET "authenticated_at" = "created_at";--> statement-breakpoint
ALTER TABLE "tokens" ADD COLUMN "session_id" uuid;--> statement-breakpoint
ALTER TABLE "mfa_removals" ADD CONSTRAINT "mfa_removals_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "mfa_removals_token_hash_key" ON "mfa_removals" USING btree ("token_hash");--> statement-breakpoint
CREATE INDEX "mfa_removals_expires_at_idx" ON "mfa_removals" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "tokens_created_by_idx" ON "tokens" USING btree ("created_by");