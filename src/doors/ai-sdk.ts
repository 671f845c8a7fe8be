export { type AiSdkTool, asAiSdkTool } from '../agent/build/ai-sdk-tool.ts'
export {
  UI_MESSAGE_ID,
  type UiApproval,
  type UiDataParts,
  type UiMessage,
  type UiMessageChunk,
  type UiMessageChunk7,
  type UiMetadata,
  type UiQuestion,
  type UiSubagent,
  type UiSubagentCall,
} from '../conversation/ui/ui-chunk.ts'
export { toUIMessageStream, toUIMessages } from '../conversation/ui/ui-message-stream.ts'
export type { UiPageQuery, UiStreamOptions } from '../conversation/ui/ui-options.ts'
export type { AiSdkModel } from '../model/ai-sdk/ai-sdk-model.ts'
export { fromAiSdk } from '../model/ai-sdk/from-ai-sdk.ts'
