#include "gdrperf/report/network.h"

#include <gtest/gtest.h>

namespace gdrperf::report {
namespace {

Measurement with(Counters client, Counters server) {
  Measurement measured;
  measured.client_counters = std::move(client);
  measured.server_counters = std::move(server);
  measured.counted_s = 2;
  return measured;
}

TEST(ReportNetwork, NoCountersNoVerdict) { EXPECT_FALSE(network_of(Measurement())); }

TEST(ReportNetwork, TrafficAloneIsClean) {
  Measurement measured = with({{"port_xmit_packets", 1000}, {"port_xmit_data", 1100}},
                              {{"port_rcv_packets", 1000}, {"port_rcv_data", 1100}});
  measured.counted_bytes = 4000;
  const auto network = network_of(measured);
  ASSERT_TRUE(network);
  EXPECT_EQ(network->verdict(), "clean");
  EXPECT_EQ(network->resent_per_million, 0);
  EXPECT_DOUBLE_EQ(network->wire_bytes_per_byte.value(), 1.1);
  EXPECT_TRUE(sentences(*network).empty());
}

TEST(ReportNetwork, LostMessagesAreNotCleanWhateverPortsCounted) {
  Measurement measured = with({{"port_xmit_packets", 1000}}, {{"port_rcv_packets", 880}});
  measured.delivery = Delivery{1000, 0};
  EXPECT_EQ(network_of(measured)->verdict(), "clean");
  measured.delivery->lost = 120;
  EXPECT_EQ(network_of(measured)->verdict(), "lossy");
}

TEST(ReportNetwork, ALossThatBothEndsCountIsOne) {
  const auto network =
      network_of(with({{"port_xmit_packets", 1000000}, {"packet_seq_err", 3}}, {{"out_of_sequence", 3}}));
  EXPECT_EQ(network->verdict(), "lossy");
  EXPECT_DOUBLE_EQ(network->resent_per_million.value(), 3);
  ASSERT_EQ(sentences(*network).size(), 1u);
  EXPECT_NE(sentences(*network)[0].find("3 of a million"), std::string::npos);
}

TEST(ReportNetwork, ErrorsOfAPcieLinkAreToldAndAreNoneOfTheNetwork) {
  const auto network = network_of(
      with({{"port_xmit_packets", 1000}, {"aer_correctable", 4}}, {{"port_rcv_packets", 1000}, {"aer_fatal", 1}}));
  EXPECT_EQ(network->verdict(), "clean");
  ASSERT_EQ(sentences(*network).size(), 1u);
  EXPECT_NE(sentences(*network)[0].find("had 5 errors"), std::string::npos);
}

TEST(ReportNetwork, APortThatSendsToItselfCountsTwice) {
  const Counters counters = {{"port_xmit_packets", 1000}, {"port_rcv_packets", 1000}, {"port_xmit_data", 1100},
                             {"port_rcv_data", 1100},     {"packet_seq_err", 1},      {"out_of_sequence", 1},
                             {"rp_cnp_handled", 3}};
  Measurement measured = with(counters, counters);
  measured.one_port = true;
  measured.counted_bytes = 4000;
  const auto network = network_of(measured);
  EXPECT_DOUBLE_EQ(network->resent_per_million.value(), 1000);
  EXPECT_DOUBLE_EQ(network->wire_bytes_per_byte.value(), 1.1);
  EXPECT_EQ(network->congestion, 3u);
}

TEST(ReportNetwork, ALossWithoutCountedPacketsIsTold) {
  const auto network = network_of(with({{"local_ack_timeout_err", 2}}, {}));
  EXPECT_EQ(network->verdict(), "lossy");
  EXPECT_FALSE(network->resent_per_million);
}

TEST(ReportNetwork, SoftRoceCountsUnderItsOwnNames) {
  const auto network =
      network_of(with({{"sent_pkts", 500}, {"rcvd_pkts", 500}, {"rcvd_seq_err", 1}}, {{"out_of_seq_request", 1}}));
  EXPECT_DOUBLE_EQ(network->resent_per_million.value(), 1000);
}

TEST(ReportNetwork, PausesAndCongestionHaveWordsOfTheirOwn) {
  const auto paused =
      network_of(with({{"rx_prio3_pause", 7}, {"rx_prio3_pause_duration", 200000}, {"rx_prio3_pause_transition", 5}},
                      {{"tx_prio3_pause", 9}}));
  EXPECT_EQ(paused->verdict(), "paused");
  EXPECT_EQ(paused->pauses, 7u);
  EXPECT_DOUBLE_EQ(paused->pause_share.value(), 0.1);
  EXPECT_NE(sentences(*paused)[0].find("10 % of the time"), std::string::npos);
  const auto both = network_of(with({{"rp_cnp_handled", 4}, {"rx_discards_phy", 1}}, {}));
  EXPECT_EQ(both->verdict(), "lossy+throttled");
  EXPECT_EQ(sentences(*both).size(), 2u);
}

TEST(ReportNetwork, ResentAndMissedAreCountedAtBothEnds) {
  Measurement measured = with({{"port_xmit_packets", 1}, {"packet_seq_err", 1}}, {{"to_retransmits", 2}});
  EXPECT_DOUBLE_EQ(network_of(measured)->resent_per_million.value(), 3e6);
  measured = with({{"port_xmit_packets", 1000}, {"packet_seq_err", 2}, {"missing_resp", 1}}, {{"out_of_sequence", 4}});
  EXPECT_DOUBLE_EQ(network_of(measured)->resent_per_million.value(), 5000) << "the end that saw more";
  // Nobody counts packets: they are lost all the same.
  measured = with({{"packet_seq_err", 1}, {"rx_drops", 4}}, {{"port_rcv_errors", 8}});
  EXPECT_EQ(network_of(measured)->dropped, 13u);
  EXPECT_FALSE(network_of(measured)->resent_per_million);
}

TEST(ReportNetwork, TrafficOfAPortIsTheSumOfBothDirections) {
  const Counters counters = {{"port_xmit_packets", 700},
                             {"port_rcv_packets", 300},
                             {"port_xmit_data", 700},
                             {"port_rcv_data", 300},
                             {"packet_seq_err", 1}};
  Measurement measured = with(counters, {});
  measured.counted_bytes = 2000;
  EXPECT_DOUBLE_EQ(network_of(measured)->resent_per_million.value(), 1000);
  EXPECT_DOUBLE_EQ(network_of(measured)->wire_bytes_per_byte.value(), 2) << "a word is four bytes";
  measured.one_port = true;
  EXPECT_DOUBLE_EQ(network_of(measured)->resent_per_million.value(), 1e6 / 700);
  EXPECT_DOUBLE_EQ(network_of(measured)->wire_bytes_per_byte.value(), 1.4);
}

TEST(ReportNetwork, BytesOnTheWireNeedBothCounts) {
  Measurement measured = with({{"port_xmit_data", 1}}, {});
  EXPECT_FALSE(network_of(measured)->wire_bytes_per_byte) << "the payload is not known";
  measured.counted_bytes = 1;
  EXPECT_DOUBLE_EQ(network_of(measured)->wire_bytes_per_byte.value(), 4);
  measured.client_counters = {{"port_xmit_packets", 1}};
  EXPECT_FALSE(network_of(measured)->wire_bytes_per_byte) << "the port counts no data";
}

TEST(ReportNetwork, PausesAreAShareOfTheTimeThatWasCounted) {
  Measurement measured = with(
      {{"a_counter", 1},
       {"rx_prio0_pause_transition", 2},
       {"rx_prio1_pause_duration", 100'000},
       {"rx_prio2_pause", 3}},
      {{"rx_prio3_pause_duration", 60'000}, {"rx_pfc_ena_frames_pri3", 4}, {"tx_prio3_pause_duration", 900'000}});
  EXPECT_EQ(network_of(measured)->pauses, 7u);
  EXPECT_DOUBLE_EQ(network_of(measured)->pause_share.value(), 0.05);
  measured.counted_s = 0.5;
  EXPECT_DOUBLE_EQ(network_of(measured)->pause_share.value(), 0.2);
  measured.counted_s = 0.05;
  EXPECT_DOUBLE_EQ(network_of(measured)->pause_share.value(), 1) << "never more than all of it";
  measured.counted_s = 0;
  EXPECT_FALSE(network_of(measured)->pause_share);
}

TEST(ReportNetwork, EachThingHasItsSentence) {
  Network network;
  EXPECT_TRUE(sentences(network).empty());
  network.resent_per_million = 0.33333;
  network.dropped = network.congestion = network.pauses = network.link_errors = 1;
  network.pause_share = 0.123456;
  EXPECT_EQ(sentences(network),
            (std::vector<std::string>{
                "the network lost packets: 0.333 of a million were sent again (PFC or ECN not set up, a bad cable, a "
                "full switch)",
                "the ports' counters of discarded or broken packets rose by 1: a bad cable, or buffers that overflow",
                "the sender was throttled: 1 congestion notifications (ECN, DCQCN); others share the path, or "
                "several send to one",
                "the sender was paused by its switch or the peer: 1 pause frames, 12.3 % of the time",
                "PCIe links of the NICs had 1 errors (AER); what was broken was sent again: reseat the card, its "
                "riser and cables"}));
  Network paused;
  paused.pause_share = 0.5;
  EXPECT_EQ(sentences(paused),
            std::vector<std::string>{"the sender was paused by its switch or the peer, 50 % of the time"});
  paused.pause_share.reset();
  paused.pauses = 2;
  EXPECT_EQ(sentences(paused),
            std::vector<std::string>{"the sender was paused by its switch or the peer: 2 pause frames"});
}

}  // namespace
}  // namespace gdrperf::report
