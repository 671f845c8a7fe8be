import type { RunEvent } from '../../graph/event.ts'
import { uiResult } from './ui-calls.ts'
import type { UiDataPart, UiSubagent, UiSubagentCall } from './ui-chunk.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/** The subagents below a run and their calls, as data parts that change in place. */
export class UiSubagents {
  /** Keyed by the child's run. */
  private readonly agents: Map<string, UiSubagent> = new Map()
  /** Keyed by the task. */
  private readonly calls: Map<string, UiSubagentCall> = new Map()

  /** The parts that an event of the host changes. */
  writeHost(event: RunEvent): UiDataPart[] {
    if (event.type === 'delegation-start') {
      return this.put(event.childRunId, { agent: event.agent, path: [...event.path, event.agent] })
    }
    if (event.type === 'delegation-end') return this.put(event.childRunId, { status: event.status, tool: null })
    return []
  }

  /** The parts that an event of a subagent changes. */
  write(event: RunEvent): UiDataPart[] {
    const change = changeOf(event)
    const agent = change === undefined ? [] : this.put(event.runId, { path: [...event.path], ...change })
    return [...agent, ...this.writeCall(event)]
  }

  private put(id: string, change: Partial<UiSubagent>): UiDataPart[] {
    const before = this.agents.get(id) ?? { agent: '', path: [], status: 'running', tool: null }
    const data = { ...before, ...change }
    if (data.agent === '') data.agent = data.path.at(-1) ?? ''
    this.agents.set(id, data)
    return [{ type: 'data-subagent', id, data }]
  }

  private writeCall(event: RunEvent): UiDataPart[] {
    switch (event.type) {
      case 'tool-call':
        return this.called(event)
      case 'approval-request':
        return this.change(event.nodeId, { state: 'approval-requested' })
      case 'approval-answer':
        return this.change(event.nodeId, {
          state: 'input-available',
          ...(event.input === undefined ? {} : { input: event.input }),
        })
      case 'tool-result':
        return this.change(event.nodeId, callEnd(event))
      default:
        return []
    }
  }

  private called({ nodeId, runId, path, call }: Of<'tool-call'>): UiDataPart[] {
    if (nodeId === null) return []
    const { name: tool, input } = call
    const begun = { runId, path: [...path], tool, input, output: null, errorText: null }
    this.calls.set(nodeId, { ...begun, state: 'input-available' })
    return this.change(nodeId, {})
  }

  private change(nodeId: string | null, change: Partial<UiSubagentCall>): UiDataPart[] {
    const before = this.calls.get(nodeId ?? '')
    if (before === undefined || nodeId === null) return []
    const data = { ...before, ...change }
    this.calls.set(nodeId, data)
    return [{ type: 'data-subagent-call', id: nodeId, data }]
  }
}

/** The end of a subagent's call, as its part shows it. */
export function callEnd(
  event: Pick<Of<'tool-result'>, 'content' | 'isError' | 'state' | 'json'>,
): Pick<UiSubagentCall, 'state' | 'output' | 'errorText'> {
  const { output, errorText } = uiResult(event)
  if (event.state === 'rejected') return { state: 'output-denied', output, errorText }
  return { state: errorText === null ? 'output-available' : 'output-error', output, errorText }
}

/** The activity of a subagent that an event shows. */
function changeOf(event: RunEvent): Partial<UiSubagent> | undefined {
  switch (event.type) {
    case 'run-start':
      return { agent: event.agent }
    case 'tool-call':
      return { tool: event.call.name }
    case 'tool-result':
      return { tool: null }
    case 'approval-request':
    case 'question':
      return { status: 'waiting' }
    case 'approval-answer':
    case 'answer':
      return { status: 'running' }
    case 'run-end':
      return { status: event.outcome.status, tool: null }
    default:
      return undefined
  }
}
