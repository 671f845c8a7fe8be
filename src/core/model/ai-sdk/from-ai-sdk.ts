import { DefinitionError } from '../../base/error.ts'
import type { Model } from '../model.ts'
import { openingIterator } from '../stream-parts.ts'
import { AI_SDK_VERSIONS, type AiSdkModel, isAiSdkModel, type ModelLabel, providerName } from './ai-sdk-model.ts'

/**
 * Wraps a model of the AI SDK (specification v2, v3 or v4) as a Model. Agents and runtimes also take the object itself.
 */
export function fromAiSdk(model: AiSdkModel): Model {
  check(model)
  return adapt(model, { id: `${providerName(model)}/${model.modelId}` })
}

/** Wraps a model whose name and key are known. */
export function adapt(model: AiSdkModel, adapted: ModelLabel): Model {
  return {
    id: adapted.id,
    stream: (request, { signal }) => ({
      [Symbol.asyncIterator]: () =>
        openingIterator(
          import('./answer.ts').then(({ AiSdkAnswer }) => new AiSdkAnswer(model, adapted, { request, signal })),
        ),
    }),
    secrets: async () => {
      const { sentSecrets } = await import('./known-secrets.ts')
      return [...(await sentSecrets(model)), adapted.secret ?? '']
    },
  }
}

function check(model: unknown): void {
  if (!isAiSdkModel(model)) {
    throw new DefinitionError(
      'definition',
      "fromAiSdk(): that is not a model of the AI SDK. Give it what a provider makes: fromAiSdk(openai('gpt-5')).",
    )
  }
  const { specificationVersion, modelId } = model
  if (AI_SDK_VERSIONS.includes(specificationVersion)) return
  throw new DefinitionError(
    'definition',
    `fromAiSdk(): the model "${modelId}" has specification ${specificationVersion}; known are ${AI_SDK_VERSIONS.join(', ')}. Install a version of its provider that has one of them.`,
  )
}
