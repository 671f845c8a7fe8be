import { isNotThere } from '../ai-sdk/provider-error.ts'
import type { Model } from '../model.ts'

/** Asks in the first of several ways that the server supports. The first call finds out which one. */
export function firstServed(ways: readonly [Model, ...Model[]]): Model {
  let at = 0
  return {
    id: ways[0].id,
    secrets: async () => (await Promise.all(ways.map((way) => way.secrets?.() ?? []))).flat(),
    async *stream(request, options) {
      for (let mine = at; ; mine++) {
        let isBegun = false
        try {
          for await (const part of (ways[mine] ?? ways[0]).stream(request, options)) {
            isBegun = true
            yield part
          }
          return
        } catch (error) {
          if (isBegun || mine + 1 >= ways.length || !isNotServed(error)) throw error
          at = Math.max(at, mine + 1)
        }
      }
    },
  }
}

function isNotServed(error: unknown): boolean {
  const { statusCode } = Object((error as { details?: unknown } | null)?.details) as { statusCode?: unknown }
  return isNotThere(statusCode)
}
