// The last messages of a session, for a client whose connection broke: it comes back with the id of the last event that it has.
//
// Must stay true: a session keeps so many bytes and no more. What it no longer has is not sent again; the run is found by `run_list`.

import type { EventStore, JSONRPCMessage } from '@modelcontextprotocol/server'
import { sizeOf } from '../../../core/base/json.ts'

interface SentMessage {
  readonly streamId: string
  readonly message: JSONRPCMessage
  readonly bytes: number
}

const MOST_BYTES = 65_536

/** The events of one session. Their ids are in the order in which they were sent. */
export class Replays implements EventStore {
  private readonly sent: Map<number, SentMessage> = new Map()
  private bytes = 0
  private last = 0

  async storeEvent(streamId: string, message: JSONRPCMessage): Promise<string> {
    const bytes = sizeOf(JSON.stringify(message))
    this.sent.set(++this.last, { streamId, message, bytes })
    this.bytes += bytes
    for (const [number, oldest] of this.sent) {
      if (this.bytes <= MOST_BYTES) break
      this.sent.delete(number)
      this.bytes -= oldest.bytes
    }
    return eventId(streamId, this.last)
  }

  async getStreamIdForEventId(id: string): Promise<string | undefined> {
    return EVENT_ID.exec(id)?.[1]
  }

  async replayEventsAfter(
    lastEventId: string,
    { send }: { readonly send: (id: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const [, streamId = '', last = ''] = EVENT_ID.exec(lastEventId) ?? []
    for (const [number, one] of this.sent) {
      if (number > Number(last) && one.streamId === streamId) await send(eventId(streamId, number), one.message)
    }
    return streamId
  }
}

function eventId(streamId: string, number: number): string {
  return `${streamId}.${number}`
}

const EVENT_ID = /^(.+)\.(\d{1,15})$/
