import { type Arrow, type Box, type Mood, oneLine, type Picture } from './picture.ts'
import { grouped } from './to-mermaid.ts'

/** The picture in the language of Graphviz. What people or models wrote cannot leave its box. */
export function toDot({ boxes, arrows }: Picture): string {
  const names = new Map(boxes.map(({ id }, at) => [id, `n${at}`]))
  const lines = [
    'digraph legate {',
    '  rankdir=TB;',
    '  node [shape=box, style="rounded,filled", fontname="sans-serif"];',
    ...grouped(boxes).flatMap((group, at) => frame(group, at, names)),
  ]
  for (const arrow of arrows) {
    const [from, to] = [names.get(arrow.from), names.get(arrow.to)]
    if (from !== undefined && to !== undefined) lines.push(`  ${from} -> ${to}${style(arrow)};`)
  }
  return `${[...lines, '}'].join('\n')}\n`
}

const COLOURS: Readonly<Record<Mood, string>> = { done: '#e6f4ea', open: '#e8f0fe', failed: '#fce8e6', said: '#f8f9fa' }

function frame(boxes: readonly Box[], at: number, names: ReadonlyMap<string, string>): string[] {
  const title = boxes[0]?.group ?? null
  const drawn = boxes.map(({ id, lines, mood }) => {
    const label = lines.map(escaped).join('\\n')
    return `  ${names.get(id)} [label="${label}", fillcolor="${COLOURS[mood]}"];`
  })
  if (title === null) return drawn
  return [`  subgraph cluster_${at} {`, `    label="${escaped(title)}";`, ...drawn.map((one) => `  ${one}`), '  }']
}

function style({ style: kind, label }: Arrow): string {
  const fields = [
    ...(label === '' ? [] : [`label="${escaped(label)}"`]),
    ...(kind === 'solid' ? [] : [`style=${kind === 'bold' ? 'bold' : 'dashed'}`]),
  ]
  return fields.length === 0 ? '' : ` [${fields.join(', ')}]`
}

function escaped(text: string): string {
  return oneLine(text).replace(/[\\"]/g, (one) => `\\${one}`)
}
