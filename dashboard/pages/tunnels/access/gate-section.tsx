/** The frame of a gate: whether it is on, what it does, and the buttons that change it. */
import type { ReactNode } from "react";
import { Badge, Section } from "../../../ui/section.tsx";

interface GateSectionProps {
  title: string;
  isOn: boolean;
  about: ReactNode;
  /** false for users who may not change the gate. */
  actions: ReactNode;
  children?: ReactNode;
}

export function GateSection({ title, isOn, about, actions, children }: GateSectionProps) {
  return (
    <Section
      title={title}
      actions={
        <>
          <Badge tone={isOn ? "good" : "neutral"}>{isOn ? "On" : "Off"}</Badge>
          {actions}
        </>
      }
    >
      <p className="hint">{about}</p>
      {children}
    </Section>
  );
}
