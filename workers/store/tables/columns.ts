/** Column types that several tables share. */
import { bigint, timestamp } from "drizzle-orm/pg-core";

/** @param name of the column, where it is not the property's name in snake case. */
export const timestamptz = (name = "") => timestamp(name, { withTimezone: true });

/** A total that only increases. */
export const counter = () => bigint({ mode: "number" }).notNull().default(0);
