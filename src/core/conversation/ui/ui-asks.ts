import type { RunEvent } from '../../graph/event.ts'
import type { UiApproval, UiDataPart, UiQuestion } from './ui-chunk.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/** The requests to people in a run and below it, as data parts with everything that an answer needs. */
export class UiAsks {
  /** The last request of each node. */
  private readonly approvals: Map<string, UiApproval> = new Map()
  private readonly questions: Map<string, UiQuestion> = new Map()

  /** The part that an event of any depth changes. `toolCallId` belongs to the host's own call. */
  write(event: RunEvent, toolCallId: string | null): UiDataPart[] {
    switch (event.type) {
      case 'approval-request':
        return this.asked(event, toolCallId)
      case 'approval-answer':
        return this.allowed(event)
      case 'question':
        return this.questioned(event, toolCallId)
      case 'answer':
        return this.answered(event)
      case 'tool-result':
      case 'node-state':
        return this.over(event.nodeId ?? '')
      default:
        return []
    }
  }

  private asked(event: Of<'approval-request'>, toolCallId: string | null): UiDataPart[] {
    const { nodeId, seen, path, request, call, input, reason, expiresAt } = event
    if (nodeId === null) return []
    const tool = call?.name ?? null
    const asked = { nodeId, seen, path: [...path], request, tool, input, reason, expiresAt, toolCallId }
    return this.putApproval({ ...asked, status: 'open', by: null, answer: null })
  }

  private allowed({ nodeId, allowed, by, reason, input }: Of<'approval-answer'>): UiDataPart[] {
    const asked = this.approvals.get(nodeId ?? '')
    if (asked === undefined) return []
    const edited = input === undefined ? {} : { input }
    return this.putApproval({ ...asked, ...edited, status: allowed ? 'allowed' : 'denied', by, answer: reason })
  }

  private questioned(event: Of<'question'>, toolCallId: string | null): UiDataPart[] {
    const { nodeId, seen, path, text, to, expiresAt } = event
    if (nodeId === null) return []
    const asked = { nodeId, seen, path: [...path], text, to, expiresAt, toolCallId }
    return this.putQuestion({ ...asked, status: 'open', by: null, answer: null })
  }

  private answered({ nodeId, by, text }: Of<'answer'>): UiDataPart[] {
    const asked = this.questions.get(nodeId ?? '')
    if (asked === undefined) return []
    const isOver = by === 'nobody'
    return this.putQuestion(isOver ? { ...asked, status: 'over' } : { ...asked, status: 'answered', by, answer: text })
  }

  /** Closes the requests of a node that has ended. */
  private over(nodeId: string): UiDataPart[] {
    const [approval, question] = [this.approvals.get(nodeId), this.questions.get(nodeId)]
    return [
      ...(approval?.status === 'open' ? this.putApproval({ ...approval, status: 'over' }) : []),
      ...(question?.status === 'open' ? this.putQuestion({ ...question, status: 'over' }) : []),
    ]
  }

  /** A node may ask several times, one after the other: each request is a part. */
  private putApproval(data: UiApproval): UiDataPart[] {
    this.approvals.set(data.nodeId, data)
    return [{ type: 'data-approval', id: `${data.nodeId}/${data.seen}`, data }]
  }

  private putQuestion(data: UiQuestion): UiDataPart[] {
    this.questions.set(data.nodeId, data)
    return [{ type: 'data-question', id: data.nodeId, data }]
  }
}
