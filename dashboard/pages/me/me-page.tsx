/** /me: the account of the signed-in user. */
import { useMe } from "../../app/session-state.ts";
import { ActionButton } from "../../ui/button.tsx";
import { PageFrame } from "../../ui/page.tsx";
import { signOut } from "../../api/session.ts";
import { EventList } from "../audit/event-list.tsx";
import { Section } from "../../ui/section.tsx";
import { PasswordSection } from "./password-section.tsx";
import { SecondFactorSection } from "./second-factor-section.tsx";
import { SessionsSection } from "./sessions-section.tsx";

export function Page() {
  const { user } = useMe();
  return (
    <PageFrame
      title="Your account"
      about={
        <>
          Signed in as <strong>{user.email}</strong>.
        </>
      }
      actions={<ActionButton action={signOut}>Sign out</ActionButton>}
    >
      <PasswordSection />
      <SecondFactorSection />
      <SessionsSection />
      <Section title="Your recent events">
        <EventList path="/me/events" />
      </Section>
    </PageFrame>
  );
}
