/** Calls `act` for each item, at most `atOnce` at a time. */
export async function inParallel<Item>(
  atOnce: number,
  items: Item[],
  act: (item: Item) => Promise<void>,
): Promise<void> {
  const rest = items.values();
  const worker = async () => {
    for (const item of rest) await act(item);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
}
