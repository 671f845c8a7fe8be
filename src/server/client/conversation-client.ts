import type { Id } from '../../core/graph/rows.ts'
import type { ClientTalkOperations } from '../../core/operations/methods.ts'
import type { CallOptions } from '../../core/operations/operation.ts'
import { TALK_REQUESTS } from '../../core/operations/wire/requests.made.ts'
import type { StartedRun } from './answers.ts'
import { readTreeStates } from './follow.ts'
import { addRequests } from './requests.ts'
import { type RunRequest, startParts } from './start.ts'
import type { ClientStreamOptions } from './stream.ts'
import { pathOf, type ServerRequests } from './transport.ts'
import type { TreeState } from './tree/tree-state.ts'

/** One conversation or lane on a server: its operations, and what streams or starts runs. */
export interface ConversationClient extends Talk, ClientTalkOperations {}

class Talk {
  readonly id: Id
  private readonly transport: ServerRequests

  static {
    addRequests(
      Talk,
      TALK_REQUESTS,
      (self) => self.transport,
      ({ id }) => [id],
    )
  }

  constructor(transport: ServerRequests, id: Id) {
    this.transport = transport
    this.id = id
  }

  /** One more turn. */
  send(
    input: unknown,
    request: Omit<RunRequest, 'conversationId' | 'conversationKey' | 'title'> = {},
  ): Promise<StartedRun> {
    return this.transport.json(`${this.path}/messages`, startParts({ input }, request))
  }

  /**
   * The states of the whole tree that the conversation belongs to: the first when all that has happened is known, then one
   * after each change. Read them with `treeOf`, `nodesOf` and `approvalsOf`.
   */
  follow(options: ClientStreamOptions = {}): AsyncGenerator<TreeState, void> {
    return readTreeStates(this.transport, `${this.path}/events`, options)
  }

  /** All of the tree as JSON Lines, for `client.import` of any server. */
  export({ signal }: CallOptions = {}): Promise<string> {
    return this.transport.text(`${this.path}/export`, { headers: { accept: 'application/x-ndjson' }, signal })
  }

  private get path(): string {
    return pathOf('/v1/conversations/{}', this.id)
  }
}

/** Makes the client of a conversation. */
export function conversationClient(transport: ServerRequests, id: Id): ConversationClient {
  return new Talk(transport, id) as Talk & ClientTalkOperations
}
