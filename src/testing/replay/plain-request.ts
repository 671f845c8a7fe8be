import { type Json, toJson } from '../../base/json.ts'
import type { ModelRequest } from '../../model/model.ts'
import type { PlainRequest } from './packed-request.ts'

/** What of a request is compared. */
export function plainRequest(request: ModelRequest, clean: (value: Json) => Json): PlainRequest {
  const { messages, tools, settings, outputSchema } = request
  const json = toJson({ messages, tools, settings, outputSchema })
  return clean(json.ok ? json.value : { messages: [json.error] }) as unknown as PlainRequest
}
