import type { Json, RunEvent } from '../../index.ts'

const COLOURS = { dim: 2, bold: 1, red: 31, green: 32, yellow: 33, cyan: 36 } as const

export type Colour = keyof typeof COLOURS
export type Paint = (colour: Colour, text: string) => string

/** Colours only for people: on a terminal, and not where NO_COLOR says otherwise. */
export function painter(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): Paint {
  const isPlain = stream.isTTY !== true || (env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb'
  return (colour, text) => (isPlain ? text : `\u001b[${COLOURS[colour]}m${text}\u001b[0m`)
}

/** One line of the story: when, who, what. */
export function line(paint: Paint, ms: number, [who, what]: readonly [string, string]): string {
  const time = `${(ms / 1000).toFixed(1)} s`.padStart(7)
  return `${paint('dim', time)}  ${who.padEnd(13)} ${what}\n`
}

/** Turns the events of a run into lines for people; undefined for those that tell nothing new. */
export class Story {
  private readonly inputs: Map<string, string> = new Map()
  private readonly paint: Paint

  constructor(paint: Paint) {
    this.paint = paint
  }

  tell(event: RunEvent): readonly [string, string] | undefined {
    const who = event.path.length === 1 ? (event.path[0] ?? '') : `  ${event.path.at(-1)}`
    const what = this.describe(event)
    return what === undefined ? undefined : [who, what]
  }

  private describe(event: RunEvent): string | undefined {
    switch (event.type) {
      case 'message':
        return event.role === 'agent' && event.content !== '' ? `says: ${event.content}` : undefined
      case 'tool-call':
        if (!event.delegates) this.inputs.set(event.nodeId ?? '', folderOf(event.call.input))
        return undefined
      case 'tool-result':
        return this.result(event.nodeId ?? '', event)
      case 'delegation-start':
        return `delegates to ${event.agent}`
      case 'delegation-end':
        return this.paint('green', `${event.agent} ${event.status}`)
      case 'node-state':
        return event.to === 'pending' ? this.paint('yellow', rerunOf(event)) : undefined
      default:
        return undefined
    }
  }

  /** A delegation's result is what the subagent just said. */
  private result(nodeId: string, { tool, content }: { readonly tool: string; readonly content: unknown }) {
    const folder = this.inputs.get(nodeId)
    return folder === undefined ? undefined : `${[tool, folder].filter(Boolean).join(' ')}: ${content}`
  }
}

function rerunOf({ kind, reason }: { readonly kind: string; readonly reason: string }): string {
  return `makes its ${kind === 'task' ? 'tool' : 'model'} call again: ${reason}`
}

function folderOf(input: Json): string {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return ''
  return typeof input['folder'] === 'string' ? input['folder'] : ''
}
