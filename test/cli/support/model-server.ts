import { LLMock } from '@copilotkit/aimock'
import { onTestFinished } from 'vitest'
import type { Place } from './cli.ts'

/** The name of a model that a server of `serveModel` answers for. */
export const MODEL = 'openai/gpt-5'

/** A real server that speaks as a provider does; everything that is started in this place uses it. Says what `answers` does. */
export async function serveModel(place: Place, answers: (mock: LLMock) => void): Promise<LLMock> {
  const mock = new LLMock({ port: 0, logLevel: 'silent' })
  answers(mock)
  await mock.start()
  onTestFinished(async () => {
    await mock.stop()
  })
  Object.assign(place.more, { OPENAI_BASE_URL: `${mock.url}/v1`, OPENAI_API_KEY: 'test-key', LEGATE_MODEL: MODEL })
  return mock
}
