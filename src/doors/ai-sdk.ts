export { type AiSdkTool, asAiSdkTool } from '../agent/build/ai-sdk-tool.ts'
export type {
  UiApproval,
  UiDataParts,
  UiMessage,
  UiMessageChunk,
  UiMetadata,
  UiQuestion,
  UiSubagent,
} from '../conversation/ui/ui-chunk.ts'
export { toUIMessageStream, toUIMessages } from '../conversation/ui/ui-message-stream.ts'
export type { AiSdkModel } from '../model/ai-sdk/ai-sdk-model.ts'
export { fromAiSdk } from '../model/ai-sdk/from-ai-sdk.ts'
