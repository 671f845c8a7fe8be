import { type Arrow, type Box, type Mood, oneLine, type Picture } from './picture.ts'

/** The picture as a Mermaid flowchart. What people or models wrote cannot leave its box. */
export function toMermaid({ boxes, arrows }: Picture): string {
  const names = new Map(boxes.map(({ id }, at) => [id, `n${at}`]))
  const lines = ['flowchart TD', ...grouped(boxes).flatMap((group, at) => frame(group, at, names))]
  for (const arrow of arrows) {
    const [from, to] = [names.get(arrow.from), names.get(arrow.to)]
    if (from !== undefined && to !== undefined) lines.push(`  ${from} ${line(arrow)} ${to}`)
  }
  for (const mood of Object.keys(COLOURS) as Mood[]) {
    const own = boxes.filter((box) => box.mood === mood).map(({ id }) => names.get(id))
    if (own.length > 0) lines.push(`  classDef ${mood} ${COLOURS[mood]}`, `  class ${own.join(',')} ${mood}`)
  }
  return `${lines.join('\n')}\n`
}

const COLOURS: Readonly<Record<Mood, string>> = {
  done: 'fill:#e6f4ea,stroke:#34a853',
  open: 'fill:#e8f0fe,stroke:#4285f4',
  failed: 'fill:#fce8e6,stroke:#d93025',
  said: 'fill:#f8f9fa,stroke:#9aa0a6',
}

/** Boxes of one frame stand together, in the order their first one comes. */
export function grouped(boxes: readonly Box[]): (readonly Box[])[] {
  const groups = new Map<string | null, Box[]>()
  for (const box of boxes) {
    const known = groups.get(box.group)
    if (known === undefined) groups.set(box.group, [box])
    else known.push(box)
  }
  return [...groups.values()]
}

function frame(boxes: readonly Box[], at: number, names: ReadonlyMap<string, string>): string[] {
  const title = boxes[0]?.group ?? null
  const drawn = boxes.map(({ id, lines }) => `  ${names.get(id)}["${lines.map(escaped).join('<br/>')}"]`)
  if (title === null) return drawn
  return [`  subgraph g${at}["${escaped(title)}"]`, ...drawn.map((one) => `  ${one}`), '  end']
}

function line({ style, label }: Arrow): string {
  const arrow = { solid: '-->', bold: '==>', dotted: '-.->' }[style]
  return label === '' ? arrow : `${arrow}|"${escaped(label)}"|`
}

/** Mermaid reads `#code;` as a character. */
function escaped(text: string): string {
  return oneLine(text).replace(/["#&<>`\\[\]{}()|;%]/g, (one) => `#${one.charCodeAt(0)};`)
}
