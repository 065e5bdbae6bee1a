CREATE INDEX "audit_events_created_at_idx" ON "audit_events" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "invitations_mailbox_idx" ON "invitations" USING btree (regexp_replace("email", '[+][^@]*@', '@'),"created_at");--> statement-breakpoint
CREATE OR REPLACE FUNCTION audit_events_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- What shows a misuse of an account is permanent for 30 days; the daily use of tunnels can be removed earlier.
  IF TG_OP = 'DELETE' THEN
    IF OLD.created_at < now() - interval '30 days' OR OLD.action IN (
      'tunnel_created', 'tunnel_deleted', 'tunnel_expired', 'tunnel_started', 'tunnel_stopped',
      'tunnel_maintenance_started', 'tunnel_maintenance_ended', 'tunnel_request_replayed', 'connection_ended'
    ) THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION 'audit_events is append-only' USING ERRCODE = 'insufficient_privilege';
END
$$;
