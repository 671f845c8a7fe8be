import { AsyncLocalStorage } from 'node:async_hooks'
import { IncomingMessage } from 'node:http'
import type { LLMock } from '@copilotkit/aimock'

/**
 * A mock follows each request through every promise of this process, and goes on with that when it was stopped: after forty of
 * them, promises took fifty times as long on Node 20. By their ports, so that it can be ended.
 */
const scopes = new Map<number, AsyncLocalStorage<unknown>>()

const run = AsyncLocalStorage.prototype.run
AsyncLocalStorage.prototype.run = function runNoted<R>(this: AsyncLocalStorage<unknown>, ...args: unknown[]): R {
  const [request] = args
  if (request instanceof IncomingMessage) scopes.set(request.socket.localPort ?? 0, this)
  return Reflect.apply(run, this, args)
}

/** Stops a mock with all that it has begun. */
export async function stopMock(mock: LLMock): Promise<void> {
  const { port } = mock
  try {
    await mock.stop()
  } finally {
    scopes.get(port)?.disable()
    scopes.delete(port)
  }
}
