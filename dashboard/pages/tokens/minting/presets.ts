/** The usual purposes of tokens, with the initial values of the form for each. */
import type { LifetimeUnit } from "./mint-token.ts";

export interface TokenPreset {
  id: "agent" | "ci" | "reading" | "master";
  title: string;
  about: string;
  lifetime: number;
  unit: LifetimeUnit;
  /** In US cents; null: no limit. */
  budget: number | null;
}

export const TOKEN_PRESETS: readonly TokenPreset[] = [
  {
    id: "agent",
    title: "Agent on one machine",
    about: "90 days, any name in the organization",
    lifetime: 90,
    unit: "days",
    budget: null,
  },
  {
    id: "ci",
    title: "CI, one hour",
    about: "Ends with the build, even if it leaks",
    lifetime: 1,
    unit: "hours",
    budget: null,
  },
  {
    id: "reading",
    title: "Logs and metrics",
    about: "Read logs and metrics; can't open tunnels",
    lifetime: 90,
    unit: "days",
    budget: 0,
  },
  {
    id: "master",
    title: "Master key",
    about: "For a program that mints tokens for projects",
    lifetime: 90,
    unit: "days",
    budget: null,
  },
];
