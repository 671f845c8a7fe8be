import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import type { Json, RunEvent } from '../../index.ts'
import type { Paint } from '../terminal/paint.ts'

/** Turns the events of a run into lines for people; undefined for events that say nothing new. */
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

  /** Shortens the result of a delegation: it repeats the subagent's last words. */
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

/** One call of a model or a tool that really began, logged by its own code and independent of the store. */
export interface Execution {
  readonly pid: number
  readonly key: string
}

export type Note = (key: string) => void

/**
 * Names a model call by the path of its agent and the number of earlier answers, because a model does not know its
 * node.
 */
export function modelKey(path: readonly string[], answersBefore: number): string {
  return `model ${path.join('/')} ${answersBefore}`
}

export function toolKey(nodeId: string): string {
  return `tool ${nodeId}`
}

export function noteIn(file: string): Note {
  return (key) => appendFileSync(file, `${process.pid}\t${key}\n`)
}

export function readExecutions(file: string): Execution[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean)
  return lines.map((line) => {
    const [pid = '', key = ''] = line.split('\t')
    return { pid: Number(pid), key }
  })
}
