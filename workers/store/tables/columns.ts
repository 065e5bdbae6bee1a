/** Kinds of columns that many tables have. */
import { bigint, timestamp } from "drizzle-orm/pg-core";

export const timestamptz = () => timestamp({ withTimezone: true });

/** A total that only grows. */
export const counter = () => bigint({ mode: "number" }).notNull().default(0);
