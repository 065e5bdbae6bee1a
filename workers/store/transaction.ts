/** The two ways to PostgreSQL, as Drizzle types them. */
import type { NeonHttpDatabase } from "drizzle-orm/neon-http";
import type { NeonDatabase } from "drizzle-orm/neon-serverless";

/** Single statements, each by itself. */
export type Queries = NeonHttpDatabase;

/** Statements that commit together or not at all. */
export type Transaction = Parameters<Parameters<NeonDatabase["transaction"]>[0]>[0];
