#include "tests/actor/wire/examples.hpp"

#include <cmath>
#include <limits>

namespace starling::wire {
namespace {

using namespace core;

Configuration example_configuration() {
  return {.epoch = 7,
          .members = {{0, 1, true, true}, {3, 2, true, false, 77}, {9, 4, false, true}},
          .council = {0, 3},
          .ranges = {{5, {{0, 2, false}, {9, 5, true}}}, {7, {}}},
          .departed = {{1, 2}},
          .coordinator = 3};
}

Deal deal() {
  return {{4, 2},
          {{1, 2, 7, 21, 640}, {3, 1, std::nullopt, 43}},
          {{.first_epoch = 1, .batch = 32, .samples = 96, .taken = {{3, 0}, {0, 40}}},
           {.first_epoch = 2, .taken = {{1, 0}, {0, 4}}, .sizes = {24, 40}}},
          22};
}

/// Returns a tensor with values that travel in a compact form.
Slice compact_slice_of(std::vector<float> values) {
  Slice slice = slice_of<float>(std::move(values));
  slice.is_compact = true;
  return slice;
}

/// Returns as many values, all 0 but for the first and the last, which are this.
std::vector<float> sparse_values(std::size_t count, float value) {
  std::vector<float> values(count);
  values.front() = values.back() = value;
  return values;
}

ConfigurationPtr shared_configuration() {
  return std::make_shared<const Configuration>(example_configuration());
}

Rows rows(std::vector<std::uint32_t> rows) {
  return std::make_shared<const std::vector<std::uint32_t>>(std::move(rows));
}

Push example_push(Slice update) {
  return {.worker = 3,
          .incarnation = 2,
          .range = 11,
          .step = 1234567890123,
          .samples = 32,
          .samples_total = 1ULL << 40U,
          .update = std::move(update),
          .is_join = false,
          .owner_epoch = 6};
}

RangeState example_state() {
  return {.range = 2,
          .value = slice_of<float>({1, -2, std::numeric_limits<float>::quiet_NaN()}),
          .slots = slice_of<float>({0, 1, 2, 3, 4, 5}),
          .updates = 10,
          .samples = 320,
          .round = 5,
          .ledger = {{1, 10, 320}, {}},
          .request_id = 9};
}

OwnerState example_owner_state() {
  return {.state = example_state(),
          .queued_pushes = {example_push(slice_of<float>({4})), example_push({})},
          .awaited = std::vector<AwaitedWorker>{{3, 2, 5}}};
}

NodeRecord record(NodeState state) {
  return {.id = 77,
          .address = "tcp://127.0.0.1:7400",
          .name = "n1",
          .workers = 4,
          .incarnation = 3,
          .state = state};
}

ConfigurationPtr initial_configuration() {
  return std::make_shared<const Configuration>(
      first_configuration({{0, 1, true, true, 5}, {1, 1, true, true, 6}}, 3, 2));
}

std::vector<PeerMessage> example_flow_messages() {
  const PartName part{{3, 1}, 7};
  const std::vector<std::byte> bytes(13, std::byte{5});
  return {
      FlowState{{4, 3, 77, true}, 2, {part, {{2, 0}, 0}}, {part}, {{3, "no such file"}}},
      FlowProgress{{4, 3, 77, false}, 2},
      TaskOrder{part, true},
      StageHolders{{3, 1}, {0, 2, 2}},
      TaskReport{part, part, TaskOutcome::failed, "line 3: no number", {1, 2, 3, 4}},
      OutputLost{part, 2},
      PieceRequest{7, {{part, 5}, {part, 6}}, 1},
      PieceChunks{7,
                  {{{part, 5}, 1, true, false, {}, RecordBytes::copy_of(bytes)},
                   {{part, 6}, 0, true, true, "no such file"}}},
      ActionEnd{3, "no such file"},
      ForgetActions{3},
      FlowEnd{},
  };
}

std::vector<PeerMessage> other_example_messages() {
  const auto push = std::make_shared<const Push>(example_push(slice_of<double>({0.5, -0.0})));
  Push entry = example_push({});
  entry.is_join = true;
  return {
      shared_configuration(),
      Pull{3, 11, 17, rows({0, 4, 5})},
      Pull{3, 11, 17, nullptr},
      Value{11, 17, slice_of<float>({1.5F, std::numeric_limits<float>::denorm_min()})},
      Value{11, 17, slice_of<double>({1, 2, 3, 4}, rows({1, 3}))},
      example_push(slice_of<float>({3, 2, 1})),
      example_push(compact_slice_of(sparse_values(70, 0.1F))),
      example_push(compact_slice_of(sparse_values(129, -0.5F))),
      example_push(compact_slice_of({1, -2, 0.5F})),
      entry,
      Ack{11, 18, 2, 6},
      Ended{3, 100},
      Ended{3, 100, true},
      Arrived{3, 18, true},
      Arrived{3, 18, false, barrier::Descent{0.5, -0.25}},
      Proceed{18, 25, 17, 4},
      WorkerStatus{3, WorkerStatus::Phase::waiting, 18, 0, false},
      WorkerStatus{9, WorkerStatus::Phase::ended, 0, 1234567890123, true},
      Stop{},
      BatchDone{3, 18},
      HandIn{18},
      StepQuery{3, 77},
      StepAnswer{9, 77, 16},
      StepAnswer{9, 77, 16, PaceReport{1'500'000, 20'000'000, 18'000'000, true}},
      NotifyRequest{3, 77, 18},
      Notice{9, 77},
      Install{6, std::make_shared<const OwnerState>(example_owner_state())},
      Forward{11, 6, 4, push, 0, 4},
      Forward{11, 6, 5, nullptr, 3},
      Held{11, 6, 4},
      Share{{3, 2}, 11, 18, 32, 640, slice_of<float>({1, 2}), 4},
      ShareApplied{{3, 2}, 11, 18},
      CopyRequest{11},
      CopyReply{2, std::make_shared<const RangeCopy>(
                       RangeCopy{example_state(),
                                 {{{3, 2}, 18, 640}},
                                 {Share{{3, 2}, 11, 18, 32, 640, slice_of<float>({1, 2}), 4}}})},
      CopyReply{2, nullptr},
      PushSum{2, 18, 0.375, slice_of<float>({1, -2, 3})},
      KnownProgress{18, {{{3, 2}, 18, 640}, {{9, 1}, 17, 320}}},
      GossipReceived{18},
      ModelRequest{11},
      ModelReply{
          2, std::make_shared<const ModelCopy>(ModelCopy{example_state(), {{{3, 2}, 18, 640}}})},
      ModelReply{2, nullptr},
      LossReport{18, 640, 0.375},
      LossReport{18, 640, std::nullopt},
      LossReceived{18},
      LeaderRequest{2, 18},
      LeaderReply{2, 18, slice_of<float>({1, -2, 3})},
      LeaderReply{2, 18, {}},
      SumPiece{8, 18, 1, 2, 3, slice_of<float>({1, -2, 3})},
      SumPiece{8, 18, 0, 2, 3, {}},
      SumPiece{8, 18, 1, 2, 3, compact_slice_of({0.1F, -0.2F, 0.3F})},
      SumAck{8, 18, 2},
      RoundReport{8, 18},
      RoundReport{8, std::nullopt},
      RoundReport{8, 18, {0, 3}, {1, 2, 7}},
      CatchUpRequest{8, 11},
      CatchUpRequest{8, 11, 18, false},
      CatchUpReply{
          8, 2, std::make_shared<const ModelCopy>(ModelCopy{example_state(), {{{3, 2}, 18, 640}}})},
      CouncilMessage{RangeQuery{7}},
      CouncilMessage{RangeReport{7, {0, 1, 11}}},
      CouncilMessage{Prepare{8, {2, 0}}},
      CouncilMessage{Promise{8, {2, 0}, {1, 3}, shared_configuration()}},
      CouncilMessage{Promise{8, {2, 0}, {}, nullptr}},
      CouncilMessage{Nack{8, {3, 3}}},
      CouncilMessage{Accept{8, {3, 3}, shared_configuration()}},
      CouncilMessage{Accepted{8, {3, 3}}},
      CouncilMessage{SuspicionReport{{{2, 1}, {5, 3}}}},
      JoinRequest{{12, 1, true, true}},
      LeaveRequest{{3, 2, true, false}, 8},
      EpochProbe{},
      JoinRefused{"no room"},
      DealReport{{5, 1}, deal(), 3, 9, true, {{{2, 1}, 8, 64}}, 640, 1234567890123, 77},
      DealReport{{5, 0}, {}, std::nullopt, std::nullopt, false, {}},
      RevisionRequest{{5, 1}},
      CallForReports{{5, 2}},
      NewDeal{deal()},
      DealReceived{{5, 2}},
      BeginDeal{{5, 2}},
      MemberQuestion{7, AskStep{}},
      MemberQuestion{8, AskSteps{}},
      MemberQuestion{9, AskValue{11, rows({0, 4})}},
      MemberAnswer{7, WorkerStep{18}},
      MemberAnswer{8, StepsReport{17, 19, 4, 100, 60}},
      MemberAnswer{9, Value{11, 0, slice_of<float>({1, 2}, rows({0, 4}))}},
      MemberAnswer{9, Refusal{"not owned here"}},
  };
}

}  // namespace

std::vector<PeerMessage> example_messages() {
  std::vector<PeerMessage> messages = other_example_messages();
  for (PeerMessage& message : example_flow_messages()) messages.push_back(std::move(message));
  return messages;
}

Envelope envelope_of(const PeerMessage* peer_message) {
  Envelope envelope{.from = 3, .to = 9, .epoch = 7, .packet = {}};
  envelope.packet.from = 2;
  envelope.packet.to = 4;
  envelope.packet.sequence = peer_message == nullptr ? 0 : 41;
  envelope.packet.acknowledged = 39;
  envelope.packet.selective_acks = 0b101;
  if (peer_message != nullptr)
    envelope.packet.payload = std::make_shared<const PeerMessage>(*peer_message);
  return envelope;
}

std::vector<ControlMessage> example_control_messages() {
  const JobSettings settings{{"model", "linear"}, {"workers", "4"}};
  RangeState state;
  state.value = slice_of<float>({1, 2});
  state.ledger = {{1, 2, 3}};
  std::vector<ControlMessage> all;
  const auto add = [&](auto body) { all.push_back({5, "tcp://127.0.0.1:1", std::move(body)}); };
  const auto add_membership = [&](MembershipMessage::Body body) {
    add(MembershipMessage{
        record(NodeState::alive), std::move(body), {{record(NodeState::suspect), 9}}});
  };
  add_membership(Ping{77, 1});
  add_membership(PingAck{1});
  add_membership(PingRequest{77, 2});
  add_membership(PingNack{2});
  add_membership(Gossip{});
  add_membership(Digest{{1, 2, 3, 4}, true});
  add_membership(Records{{record(NodeState::dead), record(NodeState::left)}});
  add_membership(NameTaken{77, record(NodeState::alive)});
  const auto add_request = [&](RequestBody body) { add(Request{12, std::move(body)}); };
  add_request(SubmitJob{1, settings});
  add_request(PrepareJob{1, settings, 3, "alice"});
  add_request(StartJob{1, initial_configuration(), {2, 3}});
  add_request(GetStatus{});
  add_request(GetStatus{1, false});
  add_request(GetJob{1});
  add_request(ReadRanges{1, 7, true});
  add_request(StopJob{1, true});
  add_request(CloseJob{1});
  add_request(CloseJob{1, JobSummary{JobState::failed, "why", {{"test_accuracy", 0.9}}}});
  add_request(GetJobRecords{});
  add_request(PauseJob{1, 250});
  add_request(GetTrace{1, 70'000});
  add_request(GetResult{1});
  add_request(GetFlowReport{1});
  add_request(GetJobNotes{1, 4'000'000});
  add_request(EvaluateModel{1, 99, DataPart::training, "auc", {state}});
  add_request(GetLog{17});
  add_request(LeaveCluster{});
  add_request(Disconnect{});
  const auto add_reply = [&](ReplyBody body) { add(Reply{12, std::move(body)}); };
  add_reply(Refused{"no", true});
  add_reply(Done{});
  add_reply(JobPrepared{0xfeed, 3});
  add_reply(NodeStatus{record(NodeState::alive),
                       {record(NodeState::dead)},
                       {9, 8, 7, 6, 5},
                       {{1,
                         settings,
                         {{0, 1, 2, "why", 3, 4, 5, 6, 0.5, 6, 7, 8, 9, true}},
                         initial_configuration(),
                         1500,
                         "alice",
                         "waits",
                         "failed",
                         JobState::stopped,
                         1'700'000'000'123,
                         500,
                         25,
                         60'000,
                         123.5,
                         0.25,
                         77,
                         {3, 40, {{{0, 1}, 5}}}}},
                       {78}});
  add_reply(JobDescription{settings,
                           4,
                           initial_configuration(),
                           60000,
                           "alice",
                           {{0, 32, 640, {{7}, {8}}}},
                           9,
                           deal(),
                           79,
                           44});
  add_reply(Ranges{{state}, 9});
  add_reply(LogLines{4, {{1'700'000'000'123'456, "x", "one"}, {-1, "", "two"}}, 6});
  JobRecord ended{1, "x", "softmax on digits", "alice", {JobState::done, "", {{"loss", 0.5}}}};
  ended.began_at_ms = 1'700'000'000'123;
  ended.updates_before = 9;
  ended.workers = {{{1, 2}, 3}};
  add_reply(JobRecords{{ended, {}}});
  add_reply(JobStarted{7, {"a", "b"}});
  add_reply(JobNotes{5'000'000, "notes"});
  add_reply(ModelMetrics{7, true, {{"loss", 0.5}}, 0.25});
  add_reply(TraceIntervals{77, 9'000'000, 65'536, {{1, 5, 6, 7, 2, 6}, {3, 1, 2, 3, {}, 1}}});
  add_reply(FlowResult{true, 3, {"a\t1", ""}, {{"rounds", 4}}, 0.5, {"b.txt: no such file"}});
  const flow::StageDescription stage{"text | map | reduce_by_key", 70, "hash(16)"};
  add_reply(FlowReport{77,
                       3,
                       2,
                       {{1, stage, {~std::uint64_t{0}, 5}, {1, 2, 3, 4}, 0.5}},
                       {{stage, 3, {5, 6, 7, 8}, 1.5}},
                       9,
                       true});
  return all;
}

}  // namespace starling::wire
