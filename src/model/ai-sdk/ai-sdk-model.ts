/** A language model of the AI SDK, known by its shape: what `openai('gpt-5')` and the other providers give. */
export interface AiSdkModel {
  readonly specificationVersion: AiSdkVersion
  readonly provider: string
  readonly modelId: string
  doStream(options: never): PromiseLike<{ readonly stream: AiSdkStream }>
}

export type AiSdkVersion = 'v2' | 'v3' | 'v4'

/** A ReadableStream, as far as it is read here. */
export interface AiSdkStream {
  getReader(): {
    read(): Promise<{ readonly done: boolean; readonly value?: unknown }>
    cancel(reason?: unknown): Promise<unknown>
  }
}

export const AI_SDK_VERSIONS: readonly string[] = ['v2', 'v3', 'v4'] satisfies AiSdkVersion[]

/** Looks like a model of the AI SDK, of whatever version. */
export function isAiSdkModel(value: unknown): value is AiSdkModel {
  if (typeof value !== 'object' || value === null) return false
  const { doStream, specificationVersion } = value as Partial<AiSdkModel>
  return typeof doStream === 'function' && typeof specificationVersion === 'string'
}

/** `openai` of `openai.responses`: the name that provider options go by, and model ids begin with. */
export function providerName({ provider }: Pick<AiSdkModel, 'provider'>): string {
  const [name = ''] = provider.split('.')
  return name === '' ? 'unknown' : name
}

/** The wire format of Claude, whoever serves it. */
export function isAnthropic({ provider }: Pick<AiSdkModel, 'provider'>): boolean {
  return provider.split('.').includes('anthropic')
}

/** The chat format of OpenAI and all who copied it: a tool's result is text there. */
export function isChat({ provider }: Pick<AiSdkModel, 'provider'>): boolean {
  return provider.endsWith('.chat')
}

/** How a model of the AI SDK is shown here. */
export interface Adapted {
  readonly id: string
  /** Never shown: taken out of every message. */
  readonly secret?: string | undefined
  /** Where its key comes from. */
  readonly keyName?: string | undefined
  /** Added when nothing answers, such as how to start a local server. */
  readonly hint?: string | undefined
  /** Where its address comes from, where it is not the provider's usual one. */
  readonly urlName?: string | undefined
}
