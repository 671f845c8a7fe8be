import { setTimeout as sleep } from 'node:timers/promises'
import { LLMock } from '@copilotkit/aimock'
import { onTestFinished } from 'vitest'
import { stopMock } from '../../support/mock-provider.ts'
import type { Place } from './cli.ts'

/** The name of a model that a server of `serveModel` answers for. */
export const MODEL = 'openai/gpt-5'

/** A real server that speaks as a provider does; everything that is started in this place uses it. Says what `answers` does. */
export async function serveModel(place: Place, answers: (mock: LLMock) => void): Promise<LLMock> {
  const mock = new LLMock({ port: 0, logLevel: 'silent' })
  answers(mock)
  await mock.start()
  // An answer that nobody waits for any more is not waited for here either.
  onTestFinished(async () => {
    await Promise.race([stopMock(mock), sleep(500)])
  })
  Object.assign(place.more, { OPENAI_BASE_URL: `${mock.url}/v1`, OPENAI_API_KEY: 'test-key', LEGATE_MODEL: MODEL })
  return mock
}
