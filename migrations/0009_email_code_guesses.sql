ALTER TABLE "email_codes" ADD COLUMN "guesses" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "email_codes" ADD COLUMN "guesses_since" timestamp with time zone DEFAULT now() NOT NULL;