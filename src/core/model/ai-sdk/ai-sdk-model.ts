/**
 * A language model of the AI SDK, recognised by its shape: the object that `openai('gpt-5')` and the other providers
 * return.
 */
export interface AiSdkModel {
  readonly specificationVersion: AiSdkVersion
  readonly provider: string
  readonly modelId: string
  doStream(options: never): PromiseLike<{ readonly stream: AiSdkStream }>
}

export type AiSdkVersion = 'v2' | 'v3' | 'v4'

/** The part of a ReadableStream that is used here. */
export interface AiSdkStream {
  getReader(): {
    read(): Promise<{ readonly done: boolean; readonly value?: unknown }>
    cancel(reason?: unknown): Promise<unknown>
  }
}

export const AI_SDK_VERSIONS: readonly string[] = ['v2', 'v3', 'v4'] satisfies AiSdkVersion[]

/** True for an object that looks like a model of the AI SDK, of any version. */
export function isAiSdkModel(value: unknown): value is AiSdkModel {
  if (typeof value !== 'object' || value === null) return false
  const { doStream, specificationVersion } = value as Partial<AiSdkModel>
  return typeof doStream === 'function' && typeof specificationVersion === 'string'
}

/** The provider's name in provider options and at the beginning of model ids: `openai` for `openai.responses`. */
export function providerName({ provider }: Pick<AiSdkModel, 'provider'>): string {
  const [name = ''] = provider.split('.')
  return name === '' ? 'unknown' : name
}

/** True for the wire format of Claude, whoever serves it. */
export function isAnthropic({ provider }: Pick<AiSdkModel, 'provider'>): boolean {
  return provider.split('.').includes('anthropic')
}

/** True for the chat format of OpenAI and its copies, in which a tool's result is text. */
export function isChat({ provider }: Pick<AiSdkModel, 'provider'>): boolean {
  return provider.endsWith('.chat')
}

/** The name, key and hints that go with a model of the AI SDK. */
export interface ModelLabel {
  readonly id: string
  /** Removed from every message. */
  readonly secret?: string | undefined
  /** The variable or file that its key comes from. */
  readonly keyName?: string | undefined
  /** Added to the error when nothing answers, such as how to start a local server. */
  readonly hint?: string | undefined
  /** The variable or file that its address comes from, where it is not the provider's usual one. */
  readonly urlName?: string | undefined
}
