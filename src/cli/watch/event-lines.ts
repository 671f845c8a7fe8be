import { subagentLine, subagentNotice } from '../../doors/recipe.ts'
import type { Content, Id, RunEvent } from '../../index.ts'
import { shownId } from '../store/find-run.ts'
import { count, duration, plural } from '../terminal/amounts.ts'
import { cleanText, exactLine, oneLine } from '../terminal/clean.ts'
import type { Colour, Paint } from '../terminal/paint.ts'
import { cut, pad } from '../terminal/width.ts'
import { answerCommand, showCommand } from './request-text.ts'
import { contentWords, preview } from './words.ts'

const TIME = 9
const WHO = 16
const PREVIEW = 160
/** Tools with which a model starts subagents that it describes itself. */
const OPEN_TOOLS: ReadonlySet<string> = new Set(['subagent', 'delegate', 'Agent'])

export interface EventLinesOptions {
  readonly paint: Paint
  /** Also show streamed text while it arrives. */
  readonly deltas: boolean
  /** Leave out approvals: they are given at once and reported by whoever gives them. */
  readonly isAllowed?: boolean
  /**
   * Show prompts on one line; `prompt` is the text for the run that the person started. Default: show them completely.
   */
  readonly brief?: { readonly prompt: string | null }
}

/** Formats time, agent and text: one line, or more if the text has more. */
export function storyLine(paint: Paint, ms: number, [who, what]: readonly [who: string, what: string]): string {
  const time = `${(Math.max(0, ms) / 1000).toFixed(1)} s`.padStart(TIME - 2)
  const [first = '', ...more] = what.split('\n')
  const indent = ' '.repeat(TIME + WHO + 1)
  return [`${paint('dim', time)}  ${pad(who, WHO)} ${first}`, ...more.map((text) => indent + text)]
    .join('\n')
    .concat('\n')
}

/** Turns the events of a run into lines for people; empty for events that say nothing new. */
export class EventLines {
  private readonly paint: Paint
  private readonly deltas: boolean
  private readonly isAllowed: boolean
  private readonly brief: EventLinesOptions['brief']
  private startedAt: number | undefined
  /** The text of running nodes that was already shown. */
  private readonly shown: Map<Id, string> = new Map()
  /** Runs of subagents that a model described; many have the same name. */
  private readonly described: Set<Id> = new Set()
  /** The last reported reason of a node's end, by run: the run may end for the same reason. */
  private readonly reasons: Map<Id, string> = new Map()

  constructor({ paint, deltas, isAllowed = false, brief }: EventLinesOptions) {
    this.paint = paint
    this.brief = brief
    this.deltas = deltas
    this.isAllowed = isAllowed
  }

  tell(event: RunEvent): string {
    this.startedAt ??= event.at
    if (this.isAllowed && event.type.startsWith('approval-')) return ''
    const what = this.describe(event)
    if (what === '') return ''
    const who = '  '.repeat(Math.max(0, event.path.length - 1)) + oneLine(event.path.at(-1) ?? '')
    return storyLine(this.paint, event.at - this.startedAt, [who, what])
  }

  private describe(event: RunEvent): string {
    switch (event.type) {
      case 'run-queued':
        return this.dim('is queued')
      case 'run-start':
        return this.dim(`starts (${shownId(event.runId)})`)
      case 'run-end':
        return this.end(event.outcome)
      case 'message':
        return this.message(event)
      case 'tool-call':
        return `${this.called(event)} ${this.dim(preview(event.call.input, PREVIEW))}`.trimEnd()
      case 'tool-result':
        return this.result(event)
      case 'delegation-start':
        if (OPEN_TOOLS.has(event.tool)) this.described.add(event.childRunId)
        return `delegates to ${oneLine(event.agent)} ${this.dim(`(${shownId(event.childRunId)})`)}`
      case 'delegation-end':
        return this.ended(`${oneLine(event.agent)} ${oneLine(event.status)}`, event.status)
      default:
        return this.rarer(event)
    }
  }

  private called(event: Extract<RunEvent, { type: 'tool-call' }>): string {
    const notice = this.described.has(event.runId) ? subagentNotice(event) : undefined
    return oneLine(notice === undefined ? `calls ${event.call.name}` : subagentLine(notice))
  }

  private rarer(event: RunEvent): string {
    switch (event.type) {
      case 'approval-request':
        return this.colour('yellow', `needs a person for ${needed(event)}: ${showCommand(event.nodeId ?? '')}`)
      case 'approval-answer':
        return `${event.allowed ? 'allowed' : 'denied'} by ${oneLine(event.by)}${reasonSuffix(event.reason)}`
      case 'question':
        return this.colour('yellow', question(event))
      case 'answer':
        return `answered by ${oneLine(event.by)}: ${cut(oneLine(event.text), PREVIEW)}`
      case 'stalled':
        return this.colour(
          'yellow',
          `${oneLine(event.agent)} has been silent for ${duration(event.at - event.lastActivityAt)}`,
        )
      case 'node-state':
        this.reasons.set(event.runId, event.reason ?? '')
        return event.to === 'pending'
          ? this.colour(
              'yellow',
              `${event.kind === 'task' ? 'repeats its tool call' : 'restarts its answer'}${reasonSuffix(event.reason)}`,
            )
          : this.colour('red', `${oneLine(event.kind)} ${event.to}${reasonSuffix(event.reason)}`)
      case 'retry':
        return this.colour('yellow', `retries in ${duration(event.wakeAt - event.at)}${reasonSuffix(event.error)}`)
      case 'uncertain':
        return this.colour(
          'red',
          `${oneLine(event.tool)} may or may not have had its effect${reasonSuffix(event.reason)}`,
        )
      case 'call-settled':
        return `${oneLine(event.tool)} ${SETTLED[event.how]}, says ${oneLine(event.by)}`
      case 'late-result':
        return this.dim(`a result came too late${reasonSuffix(event.reason)}`)
      case 'budget':
        return this.colour('yellow', oneLine(event.message))
      case 'compaction':
        return this.dim(summedUp(event))
      case 'context-cut':
        return this.dim(`sees the last ${plural(event.shown, 'round')}, not the ${event.leftOut} before`)
      case 'definition-changed':
        return this.dim('continues with changed code')
      case 'extension-error':
        return this.colour(
          'yellow',
          `${oneLine(event.extension)} failed in ${event.hook}${reasonSuffix(event.message)}`,
        )
      case 'warning':
        return this.colour('yellow', oneLine(event.message))
      default:
        return this.deltas ? this.delta(event) : ''
    }
  }

  private delta(event: RunEvent): string {
    switch (event.type) {
      case 'text-delta': {
        const nodeId = event.nodeId ?? ''
        const before = this.shown.get(nodeId) ?? ''
        const added = event.cumulative ? event.text.slice(before.length) : event.text
        this.shown.set(nodeId, before + added)
        return this.streamed(added)
      }
      case 'reasoning-delta':
        return event.cumulative ? '' : this.dim(this.streamed(event.text))
      case 'tool-input-delta':
        return event.cumulative ? '' : this.dim(this.streamed(`${event.tool} ${event.text}`))
      case 'progress':
        return this.dim(`┊ ${cut(oneLine(event.message), PREVIEW)}`)
      case 'extension':
        return this.dim(`┊ ${oneLine(event.extension)}: ${oneLine(event.name)}`)
      case 'reset':
        this.shown.delete(event.nodeId ?? '')
        return this.dim('starts over')
      default:
        return ''
    }
  }

  private streamed(text: string): string {
    return cleanText(text)
      .split('\n')
      .map((part) => `┊ ${part}`)
      .join('\n')
  }

  private message(event: Extract<RunEvent, { type: 'message' }>): string {
    const { role, content, nodeId, purpose } = event
    const text = contentWords(content)
    if (role === 'user') return `input: ${this.asked(text, event.path)}`
    if (role === 'developer') return this.dim(`note: ${preview(text, PREVIEW)}`)
    const seen = this.shown.get(nodeId ?? '') ?? ''
    this.shown.delete(nodeId ?? '')
    if (text.trim() === '') return ''
    const verb = purpose === null || purpose === 'answer' ? 'says' : `says (${purpose})`
    if (seen === '' || !text.startsWith(seen)) return `${verb}: ${cleanText(text)}`
    const rest = text.slice(seen.length)
    return rest === '' ? this.dim('finished its answer') : this.streamed(rest)
  }

  private asked(text: string, path: RunEvent['path']): string {
    if (this.brief === undefined) return cleanText(text.trimEnd())
    const own = path.length === 1 ? this.brief.prompt : null
    return preview(own ?? text.trim(), PREVIEW)
  }

  private result({ tool, content, isError, state }: Extract<RunEvent, { type: 'tool-result' }>): string {
    const text = `${oneLine(tool)} ${isError ? (state === 'finished' ? 'failed' : state) : 'gave'}: ${lineOf(content)}`
    return isError ? this.colour('red', text) : text
  }

  private end({ status, error, usage, durationMs, runId }: Extract<RunEvent, { type: 'run-end' }>['outcome']): string {
    const spent = `${duration(durationMs)}, ${count(usage.inputTokens + usage.outputTokens)} tokens`
    const why = error?.message ?? null
    const isTold = why !== null && this.reasons.get(runId) === why
    return this.ended(`${oneLine(status)}${reasonSuffix(isTold ? null : why)} ${this.dim(`(${spent})`)}`, status)
  }

  private ended(text: string, status: string): string {
    return this.colour(status === 'completed' ? 'green' : 'red', text)
  }

  private dim(text: string): string {
    return this.colour('dim', text)
  }

  private colour(colour: Colour, text: string): string {
    return text
      .split('\n')
      .map((line) => (line === '' ? '' : this.paint(colour, line)))
      .join('\n')
  }
}

function lineOf(content: Content): string {
  return preview(contentWords(content), PREVIEW)
}

/** Describes what a person is asked to allow, and for which call. */
function needed({ call, request }: Extract<RunEvent, { type: 'approval-request' }>): string {
  const name = call === null ? '' : exactLine(call.name)
  if (name === '' || request === `tool:${name}`) return name || exactLine(request)
  return `${exactLine(request)} for ${name}`
}

function reasonSuffix(reason: string | null): string {
  return reason === null || reason === '' ? '' : `: ${oneLine(reason)}`
}

function question({ to, text, nodeId, seen }: Extract<RunEvent, { type: 'question' }>): string {
  const words = cut(oneLine(text), PREVIEW)
  if (to === 'outside') return `waits for the result of ${words}, which is executed elsewhere`
  const command = answerCommand({ nodeId: nodeId ?? '', seen, to })
  return to === 'host' ? `asks its host: ${words}` : `asks a person: ${words}: ${command}`
}

function summedUp({ change, turns }: Extract<RunEvent, { type: 'compaction' }>): string {
  const rounds = plural(turns, 'round')
  if (change === 'failed') return `could not sum up its first ${rounds}`
  return change === 'undone' ? `takes back the summary of ${rounds}` : `sums up its first ${rounds}`
}

/** The words for what a person has said about an uncertain call. */
const SETTLED = { happened: 'took effect', not_happened: 'did not take effect', left: 'is left as it is' } as const
