/** Drizzle's types for the two ways to PostgreSQL. */
import type { NeonHttpDatabase } from "drizzle-orm/neon-http";
import type { NeonDatabase } from "drizzle-orm/neon-serverless";

/** Single statements, each a transaction of its own. */
export type Queries = NeonHttpDatabase;

/** Statements that commit together or not at all. */
export type Transaction = Parameters<Parameters<NeonDatabase["transaction"]>[0]>[0];

/** For look-ups that run either way. */
export type Reader = Pick<Queries | Transaction, "select">;
