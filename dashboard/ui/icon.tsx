/** Icons: outlines in the color of the text. They are decoration, so a button that has only an icon needs a label. */
const PATHS = {
  home: "M3 11 12 4l9 7M5 10v10h5v-6h4v6h5V10",
  requests: "M4 6h16M4 12h10M4 18h13",
  tunnel: "M4 20v-7a8 8 0 0 1 16 0v7M9 20v-6a3 3 0 0 1 6 0v6",
  network: "M12 4v5M12 9l-6 6M12 9l6 6M4 15h4v5H4zM16 15h4v5h-4zM10 2h4v4h-4z",
  receiver: "M4 13h4l2 3h4l2-3h4M4 13V6h16v7M4 13v6h16v-6",
  token: "M14 10a4 4 0 1 0-4 4l1 1h3v3h3v2h3v-4z",
  project: "M3 6h6l2 3h10v10H3z",
  domain: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18",
  name: "M4 12 12 4h8v8l-8 8zM16 8h.01",
  chart: "M4 20V4M4 20h16M8 16v-4M13 16V8M18 16v-6",
  people:
    "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7M3 20c0-4 2.500-6 6-6s6 2 6 6M16 4.500a3.500 3.500 0 0 1 0 6M17.500 14.500c2.500.700 3.500 2.500 3.500 5.500",
  list: "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01",
  card: "M3 6h18v12H3zM3 10h18",
  user: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8M4 21c0-4 3-6 8-6s8 2 8 6",
  search: "M10.500 17a6.500 6.500 0 1 0 0-13 6.500 6.500 0 0 0 0 13M20 20l-5-5",
  menu: "M4 6h16M4 12h16M4 18h16",
  close: "M6 6l12 12M18 6 6 18",
  check: "M5 12.500 10 17 19 7",
  down: "M6 9l6 6 6-6",
  up: "M6 15l6-6 6 6",
  right: "M9 6l6 6-6 6",
  external: "M14 4h6v6M20 4l-9 9M18 14v6H4V6h6",
  theme: "M12 3a9 9 0 1 0 0 18V3",
  help: "M9 9a3 3 0 1 1 4.500 2.600c-1 .600-1.500 1.200-1.500 2.400M12 17.500h.01M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
