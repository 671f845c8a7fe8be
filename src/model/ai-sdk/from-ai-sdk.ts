import { DefinitionError } from '../../base/error.ts'
import type { Model, ModelRequest, Part } from '../model.ts'
import { type Adapted, AI_SDK_VERSIONS, type AiSdkModel, isAiSdkModel, providerName } from './ai-sdk-model.ts'
import { callOptions } from './call-options.ts'
import { PartReader } from './part-reader.ts'
import { providerError } from './provider-error.ts'

/** A model of the AI SDK (specification v2, v3 or v4) as a Model. Agents and runtimes also take the object itself. */
export function fromAiSdk(model: AiSdkModel): Model {
  check(model)
  return adapt(model, { id: `${providerName(model)}/${model.modelId}` })
}

/** The same for a model whose name and key are known. */
export function adapt(model: AiSdkModel, adapted: Adapted): Model {
  return { id: adapted.id, stream: (request, { signal }) => read(model, adapted, { request, signal }) }
}

async function* read(
  model: AiSdkModel,
  adapted: Adapted,
  { request, signal }: { request: ModelRequest; signal: AbortSignal },
): AsyncGenerator<Part> {
  const parts = new PartReader(model)
  let reader: ReturnType<Awaited<ReturnType<AiSdkModel['doStream']>>['stream']['getReader']> | undefined
  let isOver = false
  try {
    const { stream } = await model.doStream({ ...callOptions(model, request), abortSignal: signal } as never)
    reader = stream.getReader()
    for (;;) {
      const { done, value } = await reader.read()
      isOver = done
      if (done) return
      yield* parts.read(value)
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason
    throw providerError(adapted, error)
  } finally {
    // The connection is closed when nobody reads on.
    if (!isOver) await reader?.cancel().catch(() => undefined)
  }
}

function check(model: unknown): void {
  if (!isAiSdkModel(model)) {
    throw new DefinitionError(
      'definition',
      "fromAiSdk(): that is no model of the AI SDK. Give it what a provider makes: fromAiSdk(openai('gpt-5')).",
    )
  }
  const { specificationVersion, modelId } = model
  if (AI_SDK_VERSIONS.includes(specificationVersion)) return
  throw new DefinitionError(
    'definition',
    `fromAiSdk(): the model "${modelId}" has specification ${specificationVersion}; known are ${AI_SDK_VERSIONS.join(', ')}. Install a version of its provider that has one of them.`,
  )
}
