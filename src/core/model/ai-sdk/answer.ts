import { onAbort } from '../../base/abort.ts'
import type { ModelRequest, Part } from '../model.ts'
import { isDocument, notAStream } from '../stream-parts.ts'
import type { AiSdkModel, AiSdkStream, ModelLabel } from './ai-sdk-model.ts'
import { callOptions } from './call-options.ts'
import { knownSecrets } from './known-secrets.ts'
import { PartReader } from './part-reader.ts'
import { errorField, providerError } from './provider-error.ts'
import { Wrapping } from './wrapping.ts'

/** One answer while it is read. A reader that leaves early hangs up at once, even in the middle of a read. */
export class AiSdkAnswer implements AsyncIterator<Part> {
  private readonly model: AiSdkModel
  private readonly adapted: ModelLabel
  private readonly call: { readonly request: ModelRequest; readonly signal: AbortSignal }
  private readonly hangUp: AbortController = new AbortController()
  private readonly unlink: () => void
  private readonly parts: PartReader
  private wrapping: Wrapping | undefined
  private reader: ReturnType<AiSdkStream['getReader']> | undefined
  private ready: readonly Part[] = []
  private at = 0
  private isOver = false
  private contentType = ''
  private isHeard = false

  constructor(model: AiSdkModel, adapted: ModelLabel, call: AiSdkAnswer['call']) {
    this.model = model
    this.adapted = adapted
    this.call = call
    this.parts = new PartReader(model)
    this.unlink = onAbort(call.signal, () => this.hangUp.abort(call.signal.reason))
  }

  async next(): Promise<IteratorResult<Part>> {
    try {
      while (!this.isOver) {
        const part = this.ready[this.at++]
        if (part !== undefined) return { done: false, value: part }
        await this.read()
      }
      return END
    } catch (thrown) {
      const error = this.isSilent(thrown) ? notAStream(this.contentType) : thrown
      this.close()
      if (this.call.signal.aborted) throw this.call.signal.reason
      throw providerError(this.adapted, error, await knownSecrets(this.model, error))
    }
  }

  async return(): Promise<IteratorResult<Part>> {
    this.close()
    return END
  }

  private async read(): Promise<void> {
    this.reader ??= await this.open()
    const { done, value } = await this.reader.read()
    if (done) {
      this.checkHeard()
      return this.close()
    }
    const parts = this.parts.read(value)
    this.ready = this.wrapping?.read(parts) ?? parts
    this.at = 0
    if (!this.isHeard) this.noteContent(parts)
  }

  private noteContent(parts: readonly Part[]): void {
    this.isHeard = parts.some((part) => part.type !== 'finish' || !['error', 'other'].includes(part.reason))
    if (!this.isHeard && parts.length > 0) this.checkHeard()
  }

  private checkHeard(): void {
    if (this.isSilent(undefined)) throw notAStream(this.contentType)
  }

  /**
   * Clients skip text that is not an event, so a web page looks like a stream without content. Some clients report that as
   * a failure.
   */
  private isSilent(thrown: unknown): boolean {
    const isSilence = thrown === undefined || errorField(thrown, 'name') === 'AI_InvalidResponseDataError'
    return isSilence && !this.isHeard && isDocument(this.contentType)
  }

  private async open(): Promise<ReturnType<AiSdkStream['getReader']>> {
    this.wrapping = new Wrapping(this.model, this.call.request)
    const options = callOptions(this.model, this.wrapping)
    const answer = await this.model.doStream({ ...options, abortSignal: this.hangUp.signal } as never)
    this.contentType = String(errorField(errorField(errorField(answer, 'response'), 'headers'), 'content-type') ?? '')
    return answer.stream.getReader()
  }

  private close(): void {
    if (this.isOver) return
    this.isOver = true
    this.unlink()
    this.hangUp.abort()
    this.reader?.cancel().catch(() => undefined)
  }
}

const END: IteratorReturnResult<undefined> = { value: undefined, done: true }
