/**
 * Encodes QR codes (ISO/IEC 18004), as far as an authenticator's secret requires: byte mode, error correction level M,
 * versions 1 to 20.
 */
const PARITY_CODEWORDS = [
  10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26,
];
const BLOCKS = [1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16];
const VERSIONS = BLOCKS.map((_, index) => index + 1);
const MASKS = [
  (x: number, y: number) => (x + y) % 2,
  (_x: number, y: number) => y % 2,
  (x: number) => x % 3,
  (x: number, y: number) => (x + y) % 3,
  (x: number, y: number) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2,
  (x: number, y: number) => ((x * y) % 2) + ((x * y) % 3),
  (x: number, y: number) => (((x * y) % 2) + ((x * y) % 3)) % 2,
  (x: number, y: number) => (((x + y) % 2) + ((x * y) % 3)) % 2,
];

/** @returns rows of modules, true where dark; null when the text is too long. */
export function encodeQrCode(text: string): boolean[][] | null {
  const bytes = new TextEncoder().encode(text);
  const version = VERSIONS.find((each) => bytes.length <= getCapacity(each));
  if (version === undefined) return null;
  const codewords = interleave(encodeData(bytes, version), version);
  const candidates = MASKS.map((_, mask) => draw(version, codewords, mask));
  return candidates.reduce((best, next) =>
    computePenalty(next) < computePenalty(best) ? next : best,
  );
}

// ── Text to codewords ──

function countCodewords(version: number): number {
  const alignments = version === 1 ? 0 : Math.floor(version / 7) + 2;
  let modules = (16 * version + 128) * version + 64;
  if (alignments > 0) modules -= (25 * alignments - 10) * alignments - 55;
  if (version >= 7) modules -= 36;
  return Math.floor(modules / 8);
}

function getBlocks(version: number): { blocks: number; parity: number; data: number } {
  const blocks = BLOCKS[version - 1] ?? 0;
  const parity = PARITY_CODEWORDS[version - 1] ?? 0;
  return { blocks, parity, data: countCodewords(version) - blocks * parity };
}

/** The bits before the data bytes: four bits of mode, and the number of bytes. */
function countHeaderBits(version: number): number {
  return 4 + (version < 10 ? 8 : 16);
}

function getCapacity(version: number): number {
  return Math.floor((getBlocks(version).data * 8 - countHeaderBits(version)) / 8);
}

function encodeData(bytes: Uint8Array, version: number): number[] {
  const header = countHeaderBits(version);
  let bits = "0100" + bytes.length.toString(2).padStart(header - 4, "0");
  for (const byte of bytes) bits += byte.toString(2).padStart(8, "0");
  bits += "0000";
  const data = bits.match(/.{1,8}/g)?.map((octet) => parseInt(octet.padEnd(8, "0"), 2)) ?? [];
  const missing = getBlocks(version).data - data.length;
  for (let index = 0; index < missing; index += 1) data.push(index % 2 === 0 ? 0xec : 0x11);
  return data;
}

function interleave(data: number[], version: number): number[] {
  const { blocks, parity } = getBlocks(version);
  const short = Math.floor(data.length / blocks);
  const longer = data.length % blocks;
  const parts: number[][] = [];
  for (let index = 0, start = 0; index < blocks; index += 1) {
    const end = start + short + (index < blocks - longer ? 0 : 1);
    parts.push(data.slice(start, end));
    start = end;
  }
  const parities = parts.map((part) => computeParity(part, parity));
  return [...interleaveLists(parts), ...interleaveLists(parities)];
}

function interleaveLists(lists: number[][]): number[] {
  const length = Math.max(...lists.map((list) => list.length));
  return Array.from({ length }, (_, index) =>
    lists.flatMap((list) => (index < list.length ? [list[index] ?? 0] : [])),
  ).flat();
}

/** The Reed-Solomon remainder, in the field of 256 elements modulo x⁸ + x⁴ + x³ + x² + 1. */
function computeParity(data: number[], degree: number): number[] {
  let generator = [1];
  for (let index = 0, root = 1; index < degree; index += 1, root = multiply(root, 2)) {
    const shifted = [...generator, 0];
    generator = shifted.map((value, at) => value ^ multiply(generator[at - 1] ?? 0, root));
  }
  const remainder = new Array<number>(degree).fill(0);
  for (const byte of data) {
    const factor = byte ^ (remainder.shift() ?? 0);
    remainder.push(0);
    for (let at = 0; at < degree; at += 1)
      remainder[at]! ^= multiply(generator[at + 1] ?? 0, factor);
  }
  return remainder;
}

function multiply(a: number, b: number): number {
  let product = 0;
  for (let bit = 7; bit >= 0; bit -= 1) {
    product = (product << 1) ^ ((product >> 7) * 0x11d);
    product ^= ((b >> bit) & 1) * a;
  }
  return product;
}

// ── From codewords to modules ──

function draw(version: number, codewords: number[], mask: number): boolean[][] {
  const size = version * 4 + 17;
  const dark = Array.from({ length: size }, () => new Array<boolean>(size).fill(false));
  const fixed = Array.from({ length: size }, () => new Array<boolean>(size).fill(false));
  function set(x: number, y: number, isDark: boolean): void {
    if (x < 0 || y < 0 || x >= size || y >= size) return;
    dark[y]![x] = isDark;
    fixed[y]![x] = true;
  }
  function rings(x: number, y: number, radius: number, light: number[]): void {
    for (let dy = -radius; dy <= radius; dy += 1) {
      for (let dx = -radius; dx <= radius; dx += 1) {
        set(x + dx, y + dy, !light.includes(Math.max(Math.abs(dx), Math.abs(dy))));
      }
    }
  }

  for (let at = 0; at < size; at += 1) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  for (const x of getAlignmentPositions(version)) {
    for (const y of getAlignmentPositions(version)) {
      const isCorner = [x, y].filter((at) => at === 6).length + [x, y].filter(isLast).length === 2;
      if (!isCorner || (isLast(x) && isLast(y))) rings(x, y, 2, [1]);
    }
  }
  for (const [x, y] of [
    [3, 3],
    [size - 4, 3],
    [3, size - 4],
  ] as const) {
    rings(x, y, 4, [2, 4]);
  }
  drawFormat(mask, size, set);
  if (version >= 7) drawVersion(version, size, set);

  const maskValue = MASKS[mask]!;
  const bits = codewords.flatMap((word) =>
    [7, 6, 5, 4, 3, 2, 1, 0].map((bit) => (word >> bit) & 1),
  );
  for (const [x, y] of zigzag(size)) {
    if (fixed[y]![x]) continue;
    dark[y]![x] = (bits.shift() === 1) !== (maskValue(x, y) === 0);
  }
  return dark;

  function isLast(at: number): boolean {
    return at === size - 7;
  }
}

function getAlignmentPositions(version: number): number[] {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2;
  const step = Math.ceil((version * 4 + 4) / (count * 2 - 2)) * 2;
  const later = Array.from({ length: count - 1 }, (_, index) => version * 4 + 10 - index * step);
  return [6, ...later.reverse()];
}

type Setter = (x: number, y: number, isDark: boolean) => void;

/** The positions beside the first corner, without the one of the timing pattern. */
const BESIDE_TIMING = [0, 1, 2, 3, 4, 5, 7, 8];

/** The format is drawn twice: around the first corner, and divided between the other two. */
function drawFormat(mask: number, size: number, set: Setter): void {
  // Error correction level M is 00, so the data is the number of the mask.
  const bits = ((mask << 10) | computeRemainder(mask, 10, 0x537)) ^ 0x5412;
  const isDark = (bit: number) => ((bits >> bit) & 1) === 1;
  for (let bit = 0; bit < 15; bit += 1) {
    if (bit < 8) {
      set(8, BESIDE_TIMING[bit]!, isDark(bit));
      set(size - 1 - bit, 8, isDark(bit));
    } else {
      set(BESIDE_TIMING[14 - bit]!, 8, isDark(bit));
      set(8, size - 15 + bit, isDark(bit));
    }
  }
  set(8, size - 8, true);
}

function drawVersion(version: number, size: number, set: Setter): void {
  const bits = (version << 12) | computeRemainder(version, 12, 0x1f25);
  for (let bit = 0; bit < 18; bit += 1) {
    const isDark = ((bits >> bit) & 1) === 1;
    const [far, near] = [size - 11 + (bit % 3), Math.floor(bit / 3)];
    set(far, near, isDark);
    set(near, far, isDark);
  }
}

function computeRemainder(value: number, degree: number, generator: number): number {
  let remainder = value;
  for (let bit = 0; bit < degree; bit += 1) {
    remainder = (remainder << 1) ^ ((remainder >> (degree - 1)) * generator);
  }
  return remainder;
}

/** The order of the data: two columns at a time from the right, alternately up and down, without the timing column. */
function* zigzag(size: number): Generator<readonly [x: number, y: number]> {
  let isUpward = true;
  for (let right = size - 1; right > 0; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < size; step += 1) {
      const y = isUpward ? size - 1 - step : step;
      yield [right, y];
      yield [right - 1, y];
    }
    isUpward = !isUpward;
  }
}

// ── The choice of the mask ──

function computePenalty(dark: boolean[][]): number {
  const rows = dark.map((row) => row.map(Number).join(""));
  const transposed = dark.map((_, x) => dark.map((row) => Number(row[x])).join(""));
  const lines = [...rows, ...transposed];
  let penalty = 0;
  for (const line of lines) {
    for (const [run] of line.matchAll(/0{5,}|1{5,}/g)) penalty += run.length - 2;
    penalty += 40 * [...line.matchAll(/(?=00001011101|10111010000)/g)].length;
  }
  for (let y = 1; y < rows.length; y += 1) {
    for (let x = 1; x < rows.length; x += 1) {
      const square = [dark[y]![x], dark[y]![x - 1], dark[y - 1]![x], dark[y - 1]![x - 1]];
      if (new Set(square).size === 1) penalty += 3;
    }
  }
  const share = rows.join("").replaceAll("0", "").length / rows.length ** 2;
  return penalty + 10 * Math.floor(Math.abs(share - 0.5) * 20);
}
