/**
 * Makes a timer's callback run after everything that has arrived is read. Without it, the senders of these bytes would seem late
 * when this process was stopped or had no CPU time: Node.js runs timers before it reads, and immediates after it.
 */
export function afterReads(work: () => void): () => void {
  return () => void setImmediate(work);
}
